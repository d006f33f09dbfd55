"""Was an event before our change, is it our change, or did it come after? Plain module.

Source: EMC, "PUT SEQUENCE 30 EXAMPLE" (EMC-11). Numbers alone decide: nothing is asked again.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from eventhub_client.types import Caused, Delivered, Range, Receipt, Reply

Own = int | Caused | Range | Receipt | Reply
About = Callable[[dict[str, Any]], bool]


class Relation(NamedTuple):
    """`stale`: the resource was changed after our change, so what we hold of it is old."""

    when: Literal["before", "own", "after"]
    stale: bool = False


def relation(own: Own, event: Delivered, *, about: str | About = "") -> Relation:
    """How an event of the same stream relates to a change that we made.

    `own` is what the change returned: its number, the reply (`hub.reply(...)`, with `caused`) or
    the receipt of an emit. `about` says which events change the resource: its key, or a function of
    the event; not given, all that are asked about do. Raises ValueError for a reply or receipt
    without a number.
    """
    segment, first, last = _run(own)
    if event.sequence < first:
        return Relation("before")
    reused = bool(segment) and event.segment != segment and first == last == event.sequence
    if event.sequence <= last and not reused:
        return Relation("own")
    return Relation("after", _changes(event.event, about))


def _run(own: Own) -> tuple[str, int, int]:
    """Segment (empty if not known), first and last number of a change."""
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
