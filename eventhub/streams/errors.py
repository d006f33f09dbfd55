"""Errors of streams and their policies, part of the one tree of eventhub/base/errors.py.
Plain module.
"""

from eventhub.base.errors import Conflict, NotFound


class KeyedFixed(Conflict):
    """Whether a stream is keyed is for good, because a state that begins in the middle would lack
    keys; make another stream.
    """

    code = "keyed_fixed"


class NotKeyed(Conflict):
    """The stream keeps no state of keys; `keyed` is chosen when a stream is made."""

    code = "not_keyed"


class UnknownKey(NotFound):
    """The stream has no state of this key: no event had it, or the last one was a tombstone."""

    code = "unknown_key"
