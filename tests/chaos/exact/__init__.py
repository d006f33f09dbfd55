"""Exactness runs: registrations are created, changed and deleted while thousands of events a second
flow.
"""
