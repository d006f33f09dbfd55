"""What goes into the log and where it went: drafts, and their places. Plain module."""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.base.errors import EventHubError


class DraftProducer(NamedTuple):
    """Who made a draft, and its number: ascending within (client, incarnation), per stream."""

    client_id: int
    incarnation: int
    number: int


class Draft(NamedTuple):
    """An event before it has a sequence: stored bytes, and what the log needs to know of them.

    `key` and `tombstone` (the key's state ends) count in keyed streams. `token`: a digest by which
    a repeat is found. `expected`: refused if the key's state has changed after that sequence (0:
    if there is any).
    """

    stream_id: int
    mask: int  # 64 channel bits, unsigned
    payload: bytes
    producer: DraftProducer | None = None
    key: str = ""
    tombstone: bool = False
    token: bytes = b""
    expected: int | None = None


class Appended(NamedTuple):
    """Where a draft is in the log. `duplicate`: it was there before."""

    stream_id: int
    segment: str  # UUID
    sequence: int
    duplicate: bool = False


class NewRow(NamedTuple):
    """One event just stored, as the tail wants it."""

    stream_id: int
    segment: str
    sequence: int
    mask: int
    appended_at_us: int
    payload: bytes


Request = Sequence[Draft]
Outcome = list[Appended] | EventHubError


class BatchResult(NamedTuple):
    """What one transaction did: the outcome of each request, and the new rows in the order of their
    numbers.
    """

    outcomes: list[Outcome]
    rows: list[NewRow]
