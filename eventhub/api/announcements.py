"""Announces a change of this hub as an event of the stream `system`, committed with the change
itself. Django module.
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

# Events to be appended, and what each tells a change of.
Prepared = Sequence[tuple[Draft, Resource | None]]


def announce(
    *, zone: str | None, type: str, attributes: dict[str, Any], resource: Resource | None = None
) -> Appended:
    """Append the event inside the current transaction; call it LAST, because it holds the head of
    `system`.

    On commit the other processes are told. Never put a secret or a digest into the attributes.
    Without a zone it concerns the whole hub.
    """
    [appended] = announce_all(zone=zone, announcements=[Announcement(type, attributes, resource)])
    return appended


def change_of(type: str, zone_id: int, name: str, **attributes: Any) -> Announcement:
    """Return the announcement of a change of the resource that the type begins with, such as
    `client.created`.
    """
    kind = type.partition(".")[0]
    return Announcement(type, {kind: name, **attributes}, Resource(kind, zone_id, name))


def announce_all(*, zone: str | None, announcements: Sequence[Announcement]) -> list[Appended]:
    """The same for several events at once, at least one, in their order."""
    return append_announced(prepare(zone=zone, announcements=announcements))


def prepare(*, zone: str | None, announcements: Sequence[Announcement]) -> Prepared:
    """The events, made before heads are locked, for `append_announced`."""
    reply = replies.current()
    drafts = log.drafts_of(zone, announcements, action=reply.action if reply else "")
    return [(draft, one.resource) for draft, one in zip(drafts, announcements, strict=True)]


def append_announced(prepared: Prepared) -> list[Appended]:
    """Append what was prepared, note what has changed, and tell the reply of it."""
    found = append_here([draft for draft, _ in prepared])
    pairs = zip(prepared, found, strict=True)
    changed = [(resource, place) for (_, resource), place in pairs if resource is not None]
    resource_changes.record(raw_connection(), changed)
    if reply := replies.current():
        reply.add(found, changed)
    return found


def append_here(drafts: Sequence[Draft]) -> list[Appended]:
    """Append in the current transaction, to one stream; on commit the other processes are told."""
    if not connection.in_atomic_block:
        raise RuntimeError("an event that tells a change needs the transaction of the change")
    found = append.append_in(raw_connection(), drafts)
    heads = {found[-1].stream_id: found[-1].sequence}
    # robust: the change is committed, so a failing NOTIFY must not look like a failed change;
    # readers poll as well
    transaction.on_commit(lambda: append.notify(raw_connection(), heads), robust=True)
    return found


def raw_connection() -> psycopg.Connection[Any]:
    """psycopg's connection under Django's, in Django's transaction, for the log's plain SQL."""
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    return raw
