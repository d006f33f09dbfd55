"""Errors of streams and their policies, part of the one tree of eventhub/errors.py."""

from eventhub.errors import Conflict


class KeyedFixed(Conflict):
    """Whether a stream is keyed is for good, because a state that begins in the middle would lack
    keys; make another stream.
    """

    code = "keyed_fixed"
