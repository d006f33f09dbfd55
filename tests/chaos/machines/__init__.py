"""A hub on two machines that share PostgreSQL and Redis; one machine at a time is killed."""
