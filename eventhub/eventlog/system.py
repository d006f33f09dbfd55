"""What the hub does to itself is an event in the stream `system`: this writes it, in the caller's
transaction. Sql module.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.errors import EventHubError
from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.eventlog.append import append_batch
from eventhub.eventlog.drafts import Appended, Draft

SYSTEM_STREAM_ID = 1
SYSTEM_DOMAIN = "eventhub"


class Announcement(NamedTuple):
    """What is told of one change; the zone is added to the attributes. Never a secret."""

    type: str
    attributes: dict[str, Any]


def drafts_of(zone: str, announcements: Sequence[Announcement]) -> list[Draft]:
    """Events of domain `eventhub`, to be appended LAST in the transaction of the change.

    A zone's managers see the events with its name in `attributes.zone`. They can be made before
    heads are locked.
    """
    return [_draft(zone, one) for one in announcements]


def shown_to(event: Event, zone: str) -> bool:
    """True if the managers of a zone see the event of `system`: it is of their zone, or of the
    whole hub.
    """
    of: object = event.attributes.get("zone", zone)
    return of == zone


async def announce_in(
    connection: psycopg.AsyncConnection[Any], *, zone: str | None, announcement: Announcement
) -> Appended:
    """Append one event in the transaction of an asynchronous connection, LAST; `notify` after its
    commit.
    """
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        raise RuntimeError("announce_in needs the caller's open transaction")
    [outcome] = (await append_batch(connection, [[_draft(zone, announcement)]])).outcomes
    if isinstance(outcome, EventHubError):
        raise outcome
    return outcome[0]


def _draft(zone: str | None, announcement: Announcement) -> Draft:
    own = {} if zone is None else {"zone": zone}  # without one it concerns the whole hub
    attributes = {**own, **announcement.attributes}
    event = Event(SYSTEM_DOMAIN, announcement.type, attributes, source="eventhub", node="hub")
    return Draft(SYSTEM_STREAM_ID, DEFAULT_MASK, protobuf_codec.encode(event))
