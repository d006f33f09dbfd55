"""Thousands of sockets with sessions while web processes are replaced and the hub is restarted."""
