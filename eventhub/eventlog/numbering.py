"""Decides the numbers: which draft gets which sequence in which segment, and which is a duplicate.
Plain, no I/O.

The caller holds the locks of the heads. Sequences have no holes because nothing here fails after
the first number of a request is given: each request is checked whole before it is numbered.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import uuid4

from eventhub import limits
from eventhub.errors import EventHubError, ProducerWindow, UnknownStream


class Producer(NamedTuple):
    """Who made a draft, and its number there: ascending within (client, incarnation), per stream."""

    client_id: int
    incarnation: int
    number: int


class Draft(NamedTuple):
    """An event before it has a sequence: stored bytes, and what the log needs to know of them."""

    stream_id: int
    mask: int  # 64 channel bits, unsigned
    payload: bytes
    producer: Producer | None = None


class Appended(NamedTuple):
    """Where a draft is in the log. `duplicate`: it was there before."""

    stream_id: int
    segment: str  # UUID
    sequence: int
    duplicate: bool = False


class Segment:
    """The open segment of a stream while drafts are numbered.

    `id` is None until its row is written.
    """

    __slots__ = ("bytes", "first", "group_id", "id", "last", "stream_id", "uuid")

    def __init__(self, stream_id: int, uuid: str, first: int) -> None:
        self.stream_id = stream_id
        self.uuid = uuid
        self.first = first
        self.last = first - 1
        self.bytes = 0
        self.id: int | None = None
        self.group_id = 0


class Head:
    """A locked head: its open segment and the stream's limits for rolling it."""

    __slots__ = ("bytes_max", "events_max", "segment")

    def __init__(self, segment: Segment, *, events_max: int, bytes_max: int) -> None:
        self.segment = segment
        self.events_max = events_max
        self.bytes_max = bytes_max


class Row(NamedTuple):
    """One event to insert."""

    segment: Segment
    sequence: int
    draft: Draft


ProducerKey = tuple[int, int, int]  # stream, client, incarnation
NumberKey = tuple[int, int, int, int]  # stream, client, incarnation, number


class Numbering:
    """The state of one transaction: locked heads, what is known of the producers, and what was
    decided.
    """

    def __init__(
        self,
        heads: dict[int, Head],
        highest: dict[ProducerKey, int],
        known: dict[NumberKey, tuple[str, int]],
    ) -> None:
        self.heads = heads
        self.highest = highest
        self.known = known
        self.rows: list[Row] = []
        self.sealed: list[Segment] = []
        self.opened: list[Segment] = []
        self.fresh: dict[NumberKey, tuple[str, int]] = {}

    def number(self, request: Sequence[Draft]) -> list[Appended] | EventHubError:
        """Number one request, whole or not at all."""
        error = self._check(request)
        if error is not None:
            return error
        return [self._place(draft) for draft in request]

    def _check(self, request: Sequence[Draft]) -> EventHubError | None:
        highest: dict[ProducerKey, int] = {}
        for index, draft in enumerate(request):
            if draft.stream_id not in self.heads:
                return UnknownStream(index=index)
            if draft.producer is None:
                continue
            client_id, incarnation, number = draft.producer
            key = (draft.stream_id, client_id, incarnation)
            top = highest.get(key, self.highest.get(key, 0))
            if number <= top - limits.PRODUCER_WINDOW and (*key, number) not in self.known:
                return ProducerWindow(index=index, field="id.sequence", highest=top)
            highest[key] = max(top, number)
        return None

    def _place(self, draft: Draft) -> Appended:
        key: NumberKey | None = None
        if draft.producer is not None:
            client_id, incarnation, number = draft.producer
            key = (draft.stream_id, client_id, incarnation, number)
            found = self.known.get(key)
            if found is not None:
                return Appended(draft.stream_id, found[0], found[1], True)
        segment = self._next(self.heads[draft.stream_id], len(draft.payload))
        self.rows.append(Row(segment, segment.last, draft))
        if key is not None:
            self.known[key] = self.fresh[key] = (segment.uuid, segment.last)
            self.highest[key[:3]] = max(self.highest.get(key[:3], 0), key[3])
        placed = Appended(draft.stream_id, segment.uuid, segment.last)
        self._roll_if_full(self.heads[draft.stream_id])
        return placed

    def _next(self, head: Head, size_bytes: int) -> Segment:
        segment = head.segment
        segment.last += 1
        segment.bytes += size_bytes
        return segment

    def _roll_if_full(self, head: Head) -> None:
        """Seal a segment with the event that fills it, so that the head always names where the next
        one goes.
        """
        full = head.segment
        count = full.last - full.first + 1
        if count < head.events_max and full.bytes < head.bytes_max:
            return
        self.sealed.append(full)
        head.segment = Segment(full.stream_id, str(uuid4()), full.last + 1)
        self.opened.append(head.segment)
