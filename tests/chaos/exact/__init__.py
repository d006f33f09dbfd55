"""Runs of exactness: registrations that come, change and go while thousands of events a second
flow."""
