"""Fault runs of callbacks: deliveries compared with those expected, from outside the hub."""
