"""Errors of streams and their policies, part of the one tree of eventhub/base/errors.py.
Plain module.
"""

from eventhub.base.errors import Conflict, NotFound


class KeyedFixed(Conflict):
    """`keyed` cannot be changed, because the state of earlier events would be missing; create
    another stream.
    """


class NotKeyed(Conflict):
    """The stream has no keyed state; set `keyed` when you create a stream."""


class UnknownKey(NotFound):
    """The stream has no state of this key: no event had it, or the last one was a tombstone."""
