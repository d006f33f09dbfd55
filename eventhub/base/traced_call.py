"""The API call that is being traced: what is known of it so far. A context variable holds it; it is
begun where a request arrives, and completed where the caller, the zone and the route are known.
Plain module.

The object is shared by the contexts of one request, also by that of a thread that serves it.
"""

from contextvars import ContextVar

from eventhub.base.caller import Caller


class TracedCall:
    """One call. `zone_id` None: the caller is not known."""

    __slots__ = ("caller", "route", "zone_id")

    def __init__(self) -> None:
        self.caller = Caller()
        self.route = ""  # as in the OpenAPI document
        self.zone_id: int | None = None


_CURRENT: ContextVar[TracedCall | None] = ContextVar("traced_call", default=None)


def begin() -> TracedCall:
    """Begin to trace the present request."""
    call = TracedCall()
    _CURRENT.set(call)
    return call


def note_route(path: str) -> None:
    """Note the route of the present request, if it is traced."""
    if (call := _CURRENT.get()) is not None:
        call.route = path


def note_caller(caller: Caller, zone_id: int) -> None:
    """Note the caller of the present request and the zone it acts in, if it is traced."""
    if (call := _CURRENT.get()) is not None:
        call.caller, call.zone_id = caller, zone_id
