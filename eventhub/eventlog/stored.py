"""The types that readers of the log share: cursors, streams, archived segments and stored events.
Plain module.
"""

from typing import NamedTuple, Protocol, TypedDict

from eventhub.event import json_codec, protobuf_codec
from eventhub.event.envelope import Event
from eventhub.event.identity import signature
from eventhub.event.json_types import Int64, Uuid


class Cursor(NamedTuple):
    """A position in a stream: the last event read. `sequence` may be one below the segment's first,
    before its first event.
    """

    segment: str  # UUID
    sequence: int

    def json(self) -> "CursorJson":
        return {"segment": self.segment, "sequence": self.sequence}


class CursorJson(TypedDict):
    """A position in a stream: the last event read."""

    segment: Uuid
    sequence: Int64


class StreamInfo(NamedTuple):
    """The properties of a stream that the hot path uses."""

    id: int
    zone_id: int | None  # None: the hub-wide `system`
    name: str
    durability: str = "sync"  # or async, transient
    keyed: bool = False
    undeclared: str = "accept"  # or refuse: events of undeclared types
    retain_events: int | None = None  # the bounds of a transient stream
    retain_bytes: int | None = None
    quench: bool = False  # emitters may omit events without listeners, so interest must be known
    filterable_data: bool = False  # filters read JSON bodies as `data`
    deletes_at_us: int | None = None  # the end of the grace period of its deletion, if scheduled


class ArchivedSegment(NamedTuple):
    """A segment in the archive: the path of its manifest, and its first and last sequence."""

    uuid: str
    path: str
    first: int
    last: int


class StoredEvent:
    """One event of the log, shared by all readers of a process: it is decoded and encoded as JSON
    at most once.
    """

    __slots__ = (
        "_event",
        "_signature",
        "appended_at_us",
        "frame_json",
        "mask",
        "payload",
        "restricted",
        "segment",
        "sequence",
    )

    def __init__(
        self, segment: str, sequence: int, mask: int, appended_at_us: int, payload: bytes
    ) -> None:
        self.segment = segment
        self.sequence = sequence
        self.mask = mask  # 64 channel bits, unsigned
        self.appended_at_us = appended_at_us
        self.payload = payload
        self._event: Event | None = None
        self._signature = ""
        self.frame_json: str | None = None  # built by the first JSON reader
        self.restricted: bool | None = None  # whether some may not see it; None: not checked yet

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.segment, self.sequence)

    @property
    def event(self) -> Event:
        if self._event is None:
            self._event = protobuf_codec.decode(self.payload)
        return self._event

    def read(self) -> Event:
        """Return the event without keeping it decoded."""
        return self._event or protobuf_codec.decode(self.payload)

    @property
    def signature(self) -> str:
        """The signature of the event's tags (FOX-17), for readers that requested it: it decodes the
        event.
        """
        if not self._signature:
            self._signature = signature(self.event.attributes)
        return self._signature

    def derived(self, event: Event) -> "StoredEvent":
        """Return another event with the same position, to be delivered instead of this one."""
        payload = protobuf_codec.encode(event)
        found = StoredEvent(self.segment, self.sequence, self.mask, self.appended_at_us, payload)
        found._event = event
        return found

    @property
    def json(self) -> str:
        """The event's own fields as JSON text."""
        return json_codec.event_json(self.event).decode()


class ReadsArchive(Protocol):
    """The part of the archive that the log uses; called in a thread."""

    def read(
        self, segment: ArchivedSegment, after: int, events_max: int, bytes_max: int
    ) -> list[StoredEvent]:
        """Return the events of a segment after a sequence. Raises ArchiveDamaged,
        ArchiveUnavailable.
        """
