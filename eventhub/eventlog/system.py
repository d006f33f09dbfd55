"""Appends events about the hub itself to the stream `system`, in the caller's transaction.
SQL module.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.base import caller
from eventhub.base.errors import EventHubError
from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, HUB_SOURCE, Event
from eventhub.eventlog import append, resource_changes
from eventhub.eventlog.append import append_batch, require_proven
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.resource_changes import Resource
from eventhub.postgresql.rows import scalars

SYSTEM_STREAM_ID = 1
SYSTEM_DOMAIN = "eventhub"


class Announcement(NamedTuple):
    """The announcement of one change. The zone, and as `by` the present caller, are added to the
    attributes, which never contain a secret. `resource`: the changed resource, if requests may be
    conditional on its changes. `destinations`: who may see the event (audience.py); empty: all who
    may listen.
    """

    type: str
    attributes: dict[str, Any]
    resource: Resource | None = None
    destinations: tuple[str, ...] = ()


def drafts_of(
    zone: str | None, announcements: Sequence[Announcement], *, action: str = ""
) -> list[Draft]:
    """Build events of domain `eventhub`, to be appended LAST in the transaction of the change, with
    the action that caused them as `correlation`.

    Managers of a zone see the events with its name in `attributes.zone` and those without a zone,
    which concern the whole hub. Events can be built before heads are locked.
    """
    return [_draft(zone, one, action) for one in announcements]


async def announce_in(
    connection: psycopg.AsyncConnection[Any], *, zone: str | None, announcement: Announcement
) -> Appended:
    """Append one event LAST in the transaction of an asynchronous connection. Call `notify_of`
    after its commit.
    """
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        raise RuntimeError("announce_in needs the caller's open transaction")
    query = await scalars(connection).execute(append.SQL["appendable"])
    require_proven(await query.fetchone())
    [outcome] = (await append_batch(connection, [[_draft(zone, announcement)]])).outcomes
    if isinstance(outcome, EventHubError):
        raise outcome
    if announcement.resource is not None:
        await resource_changes.record_in(connection, [(announcement.resource, outcome[0])])
    return outcome[0]


async def notify_of(connection: psycopg.AsyncConnection[Any], announced: Appended) -> None:
    """Notify readers of an announcement, after its commit."""
    heads = append.heads_text({announced.stream_id: announced.sequence})
    await connection.execute(append.SQL["notify"], (heads,))


def _draft(zone: str | None, announcement: Announcement, action: str = "") -> Draft:
    own = {} if zone is None else {"zone": zone}  # without one it concerns the whole hub
    attributes = {**own, **announcement.attributes, "by": caller.current().json()}
    event = Event(
        SYSTEM_DOMAIN,
        announcement.type,
        attributes,
        source=HUB_SOURCE,
        node="hub",
        correlation=action,
        destinations=announcement.destinations,
    )
    return Draft(SYSTEM_STREAM_ID, DEFAULT_MASK, protobuf_codec.encode(event))
