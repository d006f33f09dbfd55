"""Faults at random moments against a whole hub under load, judged from outside: `python -m
tests.chaos`, described in docs/chaos.md."""
