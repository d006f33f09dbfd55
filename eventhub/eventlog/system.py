"""What the hub does to itself is an event in the stream `system`: this writes it, in the caller's
transaction. Sql module.
"""

from typing import Any

import psycopg

from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Appended, Draft

SYSTEM_STREAM_ID = 1
SYSTEM_DOMAIN = "eventhub"


def announce(
    connection: psycopg.Connection[Any], *, zone: str, type: str, attributes: dict[str, Any]
) -> Appended:
    """Append an event of domain `eventhub` to `system`, LAST in the caller's transaction;

    `notify` after its commit.

    A zone's managers see the events with its name in `attributes.zone`.
    """
    event = Event(SYSTEM_DOMAIN, type, {"zone": zone, **attributes}, source="eventhub", node="hub")
    draft = Draft(SYSTEM_STREAM_ID, DEFAULT_MASK, protobuf_codec.encode(event))
    return append_in(connection, [draft])[0]
