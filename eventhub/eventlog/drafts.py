"""What goes into the log and where it went: drafts, and their places. Plain."""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.errors import EventHubError


class Producer(NamedTuple):
    """Who made a draft, and its number: ascending within (client, incarnation), per stream."""

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


class Batch(NamedTuple):
    """What one transaction did: the outcome of each request, and the new rows in the order of their
    numbers.
    """

    outcomes: list[Outcome]
    rows: list[NewRow]
