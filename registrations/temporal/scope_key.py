"""The events that a registration over several events is about: those of its streams that its owner
may see. Registrations with the same ones share what is remembered of them. Plain module.
"""

from collections.abc import Callable
from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.patterns.pattern_engine import EventPosition


class ScopeKey(NamedTuple):
    """Streams, by id and sorted, and a text that stands for all owners who see the same of their
    events. To an owner, events that it may not see do not exist: they are not counted either.
    """

    streams: tuple[int, ...]
    viewer: str = ""


# Whether a viewer may see an event; evaluated once for all registrations of that viewer.
ViewerSees = Callable[[str, EventPosition, Event], bool]


def sees_everything(viewer: str, position: EventPosition, event: Event) -> bool:
    """Return true: every viewer sees every event."""
    return True
