"""The load generator: a process that sends load to a server and prints figures."""
