"""The names by which events refer to others: `cause`, `depends` and `correlation`. Plain module.

An event is named by its own id: its text, or of an id object `timestamp-incarnation-sequence` as in
a CloudEvent; or by its position in the log, `segment:sequence` or `stream:segment:sequence`.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from delivery.ordering.held import HeldEvent
from eventhub.event.cloudevents import id_text
from eventhub.event.envelope import Event

_POSITION = re.compile(r"(?:(.+):)?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}):([0-9]+)")
_BUNDLE = "bundle:"  # of an entry of `depends` that names a bundle
_CONVERSATION = "\0"  # no id begins with it: PostgreSQL refuses it


class NamedPosition(NamedTuple):
    """A position that a link names; without a stream it is one of any."""

    stream: str
    segment: str
    sequence: int


def position_of(link: str) -> NamedPosition | None:
    """Return the position that a link names; None if it is an id."""
    found = _POSITION.fullmatch(link)
    if found is None:
        return None
    return NamedPosition(found[1] or "", found[2].lower(), int(found[3]))


def links_of(event: Event, streams: Collection[str]) -> list[str]:
    """Return the names of the events that must be delivered before this one; none for one that
    states the order `none` (FOX-13). Entries of `depends` that name a bundle or a stream are not
    events.
    """
    if event.order == "none":
        return []
    links = [each for each in event.depends if each not in streams and not each.startswith(_BUNDLE)]
    if event.cause:
        links.append(event.cause)
    if event.correlation:
        links.append(conversation(event.correlation))
    return links


def conversation(correlation: str) -> str:
    """Return the name of a conversation. It begins with the event that has the correlation as its
    id, or with the first one that is delivered and has the correlation.
    """
    return f"{_CONVERSATION}{correlation}"


def names_of(held: HeldEvent) -> list[str]:
    """Return the names of an event: its id, the conversation that its id begins, and its
    positions.
    """
    position = f"{held.stored.segment}:{held.stored.sequence}"
    return [*lasting_names_of(held), position, f"{held.stream}:{position}"]


def lasting_names_of(held: HeldEvent) -> list[str]:
    """Return the names to know after the delivery of an event; its positions are compared with that
    of the reader.
    """
    id = id_text(held.event.id)
    return [id, conversation(id)] if id else []
