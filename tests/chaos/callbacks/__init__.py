"""Fault runs of callbacks: what is owed to endpoints, judged from outside."""
