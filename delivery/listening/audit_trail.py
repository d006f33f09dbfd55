"""The audit trail of one listener, and the row with which it starts (listener_recorder.py). Plain
module.
"""

from hashlib import blake2b

import orjson

from delivery.listening.listener_recorder import ListenerEntry, ListenerRecorder
from delivery.listening.listener_rows import NewListener, RecordedRequest
from delivery.listening.protocol import ListenerFilter, ListenerState
from delivery.listening.request import ListenRequest
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor, StreamInfo


class AuditTrail:
    """The record of one listener; does nothing for a listener that is not recorded."""

    def __init__(self) -> None:
        self._entry: ListenerEntry | None = None

    async def start(self, recorder: ListenerRecorder, new: NewListener, *, waits: bool) -> None:
        """Call ListenerRecorder.start. Raises DatabaseUnavailable."""
        self._entry = await recorder.start(new, waits=waits)

    def advance(self, cursor: Cursor, delivered_events: int) -> None:
        """Record that all matching events up to a cursor were delivered: this many more."""
        if self._entry is not None:
            self._entry = self._entry.advance(cursor, delivered_events)

    def skip_gap(self, start: str, after: Cursor) -> None:
        """Record that the listener continues after missing events."""
        if self._entry is not None:
            self._entry = self._entry.restart("gap", start, after)

    def end(self, reason: str) -> None:
        if self._entry is not None:
            self._entry.end(reason)


def new_listener(
    principal: Principal,
    info: StreamInfo,
    request: ListenRequest,
    state: ListenerState,
    predicate: str,
) -> NewListener | None:
    """Return the row of a client's listener to a stored stream, without the event after which it
    starts; `predicate` is its filter in predicate form. Return None for listeners that are not
    recorded: an operator's, and those of transient streams.
    """
    if principal.is_operator or info.durability == "transient":
        return None
    return NewListener(
        principal.zone_id,
        principal.client_id,
        info.id,
        request.transport,
        state.name.replace("\0", "\ufffd"),
        _start(request),
        Cursor("", 0),
        _recorded_request(request, state.filter, predicate),
    )


def _start(request: ListenRequest) -> str:
    """Return the kind of the requested start."""
    if isinstance(request.start, Cursor):
        return "cursor"
    return request.start if isinstance(request.start, str) else "time"


def _recorded_request(
    request: ListenRequest, filter: ListenerFilter, predicate: str
) -> RecordedRequest:
    registrations = tuple(sorted(request.registrations))
    whole = orjson.dumps([filter.mask, predicate, registrations])
    digest = blake2b(whole, digest_size=8).hexdigest()
    return RecordedRequest(filter.mask, _recorded_filter(filter, predicate), registrations, digest)


def _recorded_filter(filter: ListenerFilter, predicate: str) -> str | None:
    """Return None if the predicate is not exactly the filter, or cannot be stored."""
    everything = filter.pairs is None and filter.tree is None
    exact = bool(predicate) and (everything or predicate != "true")
    if not exact or len(predicate) > limits.LISTENER_FILTER_CHARS_STORED or "\0" in predicate:
        return None
    return predicate
