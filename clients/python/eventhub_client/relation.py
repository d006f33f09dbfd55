"""Whether an event came before our change, is our change, or came after it. Plain module.

Source: EMC, "PUT SEQUENCE 30 EXAMPLE" (EMC-11). The sequences decide; the hub is not asked again.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from eventhub_client.types import Caused, Delivered, Range, Receipt, Reply

Own = int | Caused | Range | Receipt | Reply
About = Callable[[dict[str, Any]], bool]


class Relation(NamedTuple):
    """`stale`: the resource changed after our change, so our copy is outdated."""

    when: Literal["before", "own", "after"]
    stale: bool = False


def relation(own: Own, event: Delivered, *, about: str | About = "") -> Relation:
    """Return how an event relates to a change of ours in the same stream.

    `own` is the result of the change: its sequence, the reply (`hub.reply(...)`, with `caused`) or
    the receipt of an emit. `about` selects the events that change the resource: its key, or a
    function of the event; by default all. Raises ValueError for a reply or receipt without a
    sequence.
    """
    segment, first, last = _run(own)
    if event.sequence < first:
        return Relation("before")
    reused = bool(segment) and event.segment != segment and first == last == event.sequence
    if event.sequence <= last and not reused:
        return Relation("own")
    return Relation("after", _changes(event.event, about))


def _run(own: Own) -> tuple[str, int, int]:
    """Return segment (empty if unknown), first and last sequence of a change."""
    if isinstance(own, int):
        return "", own, own
    if isinstance(own, Reply):
        if own.caused is None:
            raise ValueError("The reply names no event that it caused.")
        own = own.caused
    if isinstance(own, Receipt):
        if not own.ranges:
            return own.cursor.segment, own.cursor.sequence, own.cursor.sequence
        return own.ranges[-1].segment, own.ranges[0].first, own.ranges[-1].last
    return own


def _changes(event: dict[str, Any], about: str | About) -> bool:
    if isinstance(about, str):
        return not about or event.get("key") == about
    return about(event)
