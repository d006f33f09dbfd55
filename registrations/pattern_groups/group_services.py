"""Creates, renames, suspends, resumes and deletes pattern groups. Each change is announced in its
transaction. Django module.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import transaction

from eventhub.access.principal import Actor
from eventhub.api.announcements import append_announced, prepare, raw_connection
from eventhub.base import limits
from eventhub.base.errors import LimitReached
from eventhub.eventlog import resource_changes
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from eventhub.postgresql.rows import scalars
from registrations.pattern_groups import access, ending, selectors
from registrations.pattern_groups.ending import SQL, EndingGroup
from registrations.pattern_groups.errors import PatternGroupExists
from registrations.pattern_groups.models import PatternGroup
from registrations.scope import Owner
from registrations.services import lock_owner
from registrations.statements import fill_barrier, new_barrier


class NewPatternGroup(NamedTuple):
    """A group to be created, with the names of its streams, each once."""

    name: str
    streams: Sequence[str]
    output_stream: str | None = None


def create_pattern_group(*, actor: Actor, owner: Owner, new: NewPatternGroup) -> PatternGroup:
    """Create an empty group of the client, which begins at the heads of its streams. Raises
    PatternGroupExists, LimitReached, and what `access` raises about the streams.
    """
    streams = sorted(access.streams_to_read(actor, new.streams))
    output = access.require_output(actor, new.streams, new.output_stream)
    with transaction.atomic():
        lock_owner(owner.id)
        existing = PatternGroup.objects.live().filter(client_id=owner.id)
        if existing.count() >= limits.PATTERN_GROUPS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.PATTERN_GROUPS_PER_CLIENT_MAX)
        _refuse_taken(owner.id, new.name)
        group = PatternGroup.objects.create(
            zone_id=actor.zone_id,
            client_id=owner.id,
            name=new.name,
            streams=[one.id for one in streams],
            output_stream_id=None if output is None else output.id,
        )
        barrier = new_barrier(raw_connection())
        attributes: dict[str, Any] = {
            "streams": [one.name for one in streams],
            "output_stream": new.output_stream,
            "barrier": barrier,
        }
        announcement = _announcement("created", actor.zone_id, owner.name, group, attributes)
        prepared = prepare(zone=actor.zone, announcements=[announcement])
        fill_barrier(raw_connection(), barrier, group.streams)
        values = {"group": group.pk, "barrier": barrier}
        raw_connection().execute(SQL["start_lease"], values)
        append_announced(prepared)
        return selectors.group(actor=actor, id=group.pk)


def change_pattern_group(
    *, actor: Actor, group: PatternGroup, name: str | None = None, suspended: bool | None = None
) -> PatternGroup:
    """Rename a group, whose row is locked, or suspend or resume its patterns, all at one position
    of each stream. Repeating it changes nothing. Raises PatternGroupExists, Forbidden.
    """
    access.require_group(actor, group)
    attributes: dict[str, Any] = {}
    if name not in (None, group.name):
        _refuse_taken(group.client_id, str(name))
        PatternGroup.objects.filter(pk=group.pk).update(name=name)
        group.name = str(name)
        attributes["renamed"] = True
    barrier, changed = None, []
    if suspended is not None:
        barrier = new_barrier(raw_connection())
        values = {"group": group.pk, "barrier": barrier, "suspended": suspended}
        changed = scalars(raw_connection()).execute(SQL["switch"], values).fetchall()
    if changed:
        attributes |= {"suspended": suspended, "patterns": len(changed), "barrier": barrier}
    if attributes:
        announcement = _announcement("changed", actor.zone_id, group.client_name, group, attributes)
        prepared = prepare(zone=actor.zone, announcements=[announcement])
        if changed and barrier is not None:
            fill_barrier(raw_connection(), barrier, group.streams)
        [announced] = append_announced(prepared)
        patterns = [Resource("pattern", actor.zone_id, str(id)) for id in changed]
        resource_changes.record(raw_connection(), [(one, announced) for one in patterns])
    return selectors.group(actor=actor, id=group.pk)


def delete_pattern_group(*, actor: Actor, group: PatternGroup) -> None:
    """Delete a group, whose row is locked, with its patterns. Raises Forbidden."""
    access.require_group(actor, group)
    connection = raw_connection()
    barrier = new_barrier(connection)
    ended = EndingGroup(group.pk, group.name, group.streams, group.patterns)
    streams = ending.end_groups(connection, [ended], barrier)
    announcement = ending.deleted_announcement(actor.zone_id, group.client_name, ended, barrier)
    prepared = prepare(zone=actor.zone, announcements=[announcement])
    fill_barrier(connection, barrier, streams)
    append_announced(prepared)


def _refuse_taken(client_id: int, name: str) -> None:
    if PatternGroup.objects.live().filter(client_id=client_id, name=name).exists():
        raise PatternGroupExists(field="name")


def _announcement(
    change: str, zone_id: int, client: str, group: PatternGroup, attributes: dict[str, Any]
) -> Announcement:
    named = {"client": client, "pattern_group": group.pk, "name": group.name}
    resource = Resource("pattern_group", zone_id, str(group.pk))
    return Announcement(f"pattern_group.{change}", {**named, **attributes}, resource)
