"""What the hub does to itself is an event in the stream `system`: this writes it, in the caller's
transaction. SQL module.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.base.errors import EventHubError
from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.eventlog import append, resource_changes
from eventhub.eventlog.append import append_batch, require_proven
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.resource_changes import Resource
from eventhub.postgresql.rows import scalars

SYSTEM_STREAM_ID = 1
SYSTEM_DOMAIN = "eventhub"


class Announcement(NamedTuple):
    """What is told of one change; the zone is added to the attributes. Never a secret. `resource`
    is what changed, if conditions may be put on its changes.
    """

    type: str
    attributes: dict[str, Any]
    resource: Resource | None = None


def drafts_of(
    zone: str | None, announcements: Sequence[Announcement], *, action: str = ""
) -> list[Draft]:
    """Events of domain `eventhub`, to be appended LAST in the transaction of the change, with the
    action that caused them as `correlation`.

    A zone's managers see the events with its name in `attributes.zone`, those of the hub's no zone
    are everybody's. They can be made before heads are locked.
    """
    return [_draft(zone, one, action) for one in announcements]


async def announce_in(
    connection: psycopg.AsyncConnection[Any], *, zone: str | None, announcement: Announcement
) -> Appended:
    """Append one event in the transaction of an asynchronous connection, LAST; `notify` after its
    commit.
    """
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        raise RuntimeError("announce_in needs the caller's open transaction")
    asked = await scalars(connection).execute(append.SQL["appendable"])
    require_proven(await asked.fetchone())
    [outcome] = (await append_batch(connection, [[_draft(zone, announcement)]])).outcomes
    if isinstance(outcome, EventHubError):
        raise outcome
    if announcement.resource is not None:
        await resource_changes.record_in(connection, [(announcement.resource, outcome[0])])
    return outcome[0]


def _draft(zone: str | None, announcement: Announcement, action: str = "") -> Draft:
    own = {} if zone is None else {"zone": zone}  # without one it concerns the whole hub
    attributes = {**own, **announcement.attributes}
    event = Event(
        SYSTEM_DOMAIN,
        announcement.type,
        attributes,
        source="eventhub",
        node="hub",
        correlation=action,
    )
    return Draft(SYSTEM_STREAM_ID, DEFAULT_MASK, protobuf_codec.encode(event))
