from collections.abc import Callable
from typing import Any

from eventhub.event.envelope import Event
from eventhub.event.identity import EventId

FIELDS: tuple[str, ...]

def decode(
    payload: bytes, event: type[Event], id: type[EventId], loads: Callable[[bytes], Any], /
) -> Event | None: ...
