"""Announcements of changes as events of the stream `system`, committed with the change itself.
Django module.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import connection, transaction

from eventhub.api import replies
from eventhub.eventlog import append, resource_changes
from eventhub.eventlog import system as log
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement

# Events to append, each with the resource whose change it announces.
PreparedEvents = Sequence[tuple[Draft, Resource | None]]


def announce(
    *, zone: str | None, type: str, attributes: dict[str, Any], resource: Resource | None = None
) -> Appended:
    """Append the event in the current transaction. Call it LAST, because it locks the head of
    `system`.

    The commit notifies the other processes. Never put a secret or a digest into the attributes.
    Without a zone, the event concerns the whole hub.
    """
    [appended] = announce_all(zone=zone, announcements=[Announcement(type, attributes, resource)])
    return appended


def change_of(type: str, zone_id: int, name: str, **attributes: Any) -> Announcement:
    """Return the announcement of a change; its type begins with the kind (`client.created`)."""
    kind = type.partition(".")[0]
    return Announcement(type, {kind: name, **attributes}, Resource(kind, zone_id, name))


def announce_all(*, zone: str | None, announcements: Sequence[Announcement]) -> list[Appended]:
    """Append several announcements, at least one, in their order; as `announce`."""
    return append_announced(prepare(zone=zone, announcements=announcements))


def prepare(*, zone: str | None, announcements: Sequence[Announcement]) -> PreparedEvents:
    """Build the events for `append_announced`, before heads are locked."""
    reply = replies.current()
    drafts = log.drafts_of(zone, announcements, action=reply.action if reply else "")
    return [(draft, one.resource) for draft, one in zip(drafts, announcements, strict=True)]


def append_announced(prepared: PreparedEvents) -> list[Appended]:
    """Append prepared events; record the changes and report them in the reply's headers."""
    found = append_events([draft for draft, _ in prepared])
    pairs = zip(prepared, found, strict=True)
    changed = [(resource, position) for (_, resource), position in pairs if resource is not None]
    resource_changes.record(raw_connection(), changed)
    if reply := replies.current():
        reply.add(found, changed)
    return found


def append_events(drafts: Sequence[Draft]) -> list[Appended]:
    """Append to one stream in the current transaction; the commit notifies the other processes."""
    if not connection.in_atomic_block:
        raise RuntimeError("append the event in the transaction of its change (transaction.atomic)")
    found = append.append_in(raw_connection(), drafts)
    heads = {found[-1].stream_id: found[-1].sequence}
    # robust: the change is committed, so a failed NOTIFY must not look like a failed change;
    # readers also poll
    transaction.on_commit(lambda: append.notify(raw_connection(), heads), robust=True)
    return found


def raw_connection() -> psycopg.Connection[Any]:
    """Return psycopg's connection under Django's, in its transaction, for the log's plain SQL."""
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    return raw
