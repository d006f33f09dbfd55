"""Input and output of an append: drafts, and their positions in the log. Plain module."""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.base.errors import EventHubError
from eventhub.eventlog.stored import Cursor


class DraftProducer(NamedTuple):
    """The producer of a draft and its number, ascending per stream and (client, incarnation)."""

    client_id: int
    incarnation: int
    number: int


class Draft(NamedTuple):
    """An event before it has a sequence: its stored bytes, with the fields that the log uses.

    `key` and `tombstone` (the key's state ends) count in keyed streams. `token`: an idempotency
    digest by which a duplicate is detected. `expected`: the draft is refused if the key's state
    changed after that sequence (0: if the key has a state).
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
    """The position of a draft in the log. `duplicate`: it was stored before, and `head` is the last
    event of the stream.
    """

    stream_id: int
    segment: str  # UUID
    sequence: int
    duplicate: bool = False
    head: Cursor | None = None


class NewRow(NamedTuple):
    """An event that was just stored, for the tail."""

    stream_id: int
    segment: str
    sequence: int
    mask: int
    appended_at_us: int
    payload: bytes


Request = Sequence[Draft]
Outcome = list[Appended] | EventHubError


class AppendedBatch(NamedTuple):
    """The result of one transaction: the outcome of each request, the new rows in order of their
    sequences, and the watchers of their streams: backends on which processes listen.
    """

    outcomes: list[Outcome]
    rows: list[NewRow]
    watchers: dict[int, Sequence[int]]  # by stream; none without watchers
