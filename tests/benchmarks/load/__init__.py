"""The load generator: a process of its own that speaks to a server and prints figures."""
