"""What of a listen goes on record (delivery/listening/record.py). Plain module."""

from hashlib import blake2b

import orjson

from delivery.listening.listener_rows import NewListener, RecordedRequest
from delivery.listening.protocol import Filter, Listen
from delivery.listening.record import Entry, Record
from delivery.listening.request import Wish
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor, StreamInfo


class Trail:
    """One listen on record, or one that is nobody's to prove."""

    def __init__(self) -> None:
        self._entry: Entry | None = None

    async def begin(self, record: Record, begun: NewListener, *, waits: bool) -> None:
        """What Record.begin does. Raises DatabaseUnavailable."""
        self._entry = await record.begin(begun, waits=waits)

    def moved(self, cursor: Cursor, told: int) -> None:
        """So many more events were told, all that are wanted up to a cursor."""
        if self._entry is not None:
            self._entry = self._entry.moved(cursor, told)

    def jumped(self, start: str, after: Cursor) -> None:
        """It goes on behind what is missing."""
        if self._entry is not None:
            self._entry = self._entry.followed("gap", start, after)

    def end(self, why: str) -> None:
        if self._entry is not None:
            self._entry.end(why)


def recorded(
    principal: Principal, info: StreamInfo, wish: Wish, listen: Listen, text: str
) -> NewListener | None:
    """A client's listen to a stored stream, but for where it begins; `text` is what its filter lets
    through, in predicate form. None for an operator's, and one to what is kept nowhere.
    """
    if principal.is_operator or info.durability == "transient":
        return None
    return NewListener(
        principal.zone_id,
        principal.client_id,
        info.id,
        wish.transport,
        listen.name.replace("\0", "\ufffd"),
        _start(wish),
        Cursor("", 0),
        _wanted(wish, listen.filter, text),
    )


def _start(wish: Wish) -> str:
    """Of which kind it is."""
    if isinstance(wish.start, Cursor):
        return "cursor"
    return wish.start if isinstance(wish.start, str) else "time"


def _wanted(wish: Wish, filter: Filter, text: str) -> RecordedRequest:
    registrations = tuple(sorted(wish.registrations))
    whole = orjson.dumps([filter.mask, text, registrations])
    digest = blake2b(whole, digest_size=8).hexdigest()
    return RecordedRequest(filter.mask, _kept(filter, text), registrations, digest)


def _kept(filter: Filter, text: str) -> str | None:
    """None if it is not exactly what is let through, or cannot be kept."""
    everything = filter.pairs is None and filter.tree is None
    exact = bool(text) and (everything or text != "true")
    if not exact or len(text) > limits.LISTENER_FILTER_CHARS_STORED or "\0" in text:
        return None
    return text
