"""Signals of changes of accounts, apart from the services that send them: every process loads this
module with the apps. Django module.
"""

from django.dispatch import Signal

# Sent in the transaction that deletes a client, whose row is locked, with the client and psycopg's
# connection. Receivers delete what depends on the client and return announcements. They may lock
# heads, so no row is locked after them.
client_ending = Signal()
