"""Errors of timers, part of the one tree of eventhub/base/errors.py. Plain module."""

from eventhub.base.errors import Conflict, NotFound


class UnknownTimer(NotFound):
    """There is no such timer: it has fired for the last time, or was deleted, perhaps with its
    registration; list them with GET /v1/timers.
    """


class TimerExists(Conflict):
    """The registration, or the client without one, has a timer with this handle; delete it, or
    choose another handle.
    """


class TimerEnded(Conflict):
    """The end of the timer has passed while it was suspended; delete it, and create another one."""
