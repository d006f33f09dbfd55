"""Creates, changes and deletes patterns. Every request has one barrier: events above it were
appended after the change became visible, so a forwarder that lags gives the same result as a prompt
one. Django module.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import F, Sum

from eventhub.access.principal import Actor
from eventhub.api.announcements import append_announced, prepare, raw_connection
from eventhub.base import limits
from eventhub.base.errors import EventHubError, LimitReached
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from registrations.models import CURRENT
from registrations.pattern_groups import access, selectors
from registrations.pattern_groups.definition import ParsedPattern, PatternDefinition, parsed
from registrations.pattern_groups.errors import (
    PatternExists,
    PatternsTooCostly,
    UnknownPatternGroup,
)
from registrations.pattern_groups.models import (
    PatternGroup,
    PatternStatus,
    PatternVersion,
    StoredPattern,
)
from registrations.quotas import require_room
from registrations.scope import Owner
from registrations.services import lock_owner
from registrations.statements import fill_barrier, new_barrier


class NewPattern(NamedTuple):
    """A pattern to be created, in a group of its client by name."""

    group: str
    name: str
    definition: PatternDefinition


def create_patterns(
    *, actor: Actor, owner: Owner, items: Sequence[NewPattern]
) -> list[StoredPattern]:
    """Create all of the patterns or none: an error's `index` is that of the refused one. Raises the
    errors of the languages, UnknownPatternGroup, PatternExists, LimitReached, PatternsTooCostly,
    Forbidden, and what `access` raises about what the texts name.
    """
    trees = [_parsed(index, item.definition) for index, item in enumerate(items)]
    with transaction.atomic():
        lock_owner(owner.id)
        groups = _lock_groups(actor, owner.id, items)
        used = PatternGroup.objects.live().filter(client_id=owner.id)
        total = used.aggregate(total=Sum("patterns"))["total"] or 0
        require_room("patterns", actor.zone_id, owner.id, used=total, more=len(items))
        access.require_targets(actor, owner.id, trees)
        _refuse_taken(groups, items)
        _admit(groups, items, trees)
        rows = StoredPattern.objects.bulk_create(
            StoredPattern(
                zone_id=actor.zone_id,
                client_id=owner.id,
                group=groups[item.group],
                name=item.name,
            )
            for item in items
        )
        connection = raw_connection()
        barrier = new_barrier(connection)
        versions = PatternVersion.objects.bulk_create(
            _version(row, 1, item.definition, tree.cost, barrier)
            for row, item, tree in zip(rows, items, trees, strict=True)
        )
        for group in groups.values():
            group.save(update_fields=["patterns"])
        announcements = [
            _announcement("created", owner.name, row, version)
            for row, version in zip(rows, versions, strict=True)
        ]
        prepared = prepare(zone=actor.zone, announcements=announcements)
        streams = {id for group in groups.values() for id in group.streams}
        fill_barrier(connection, barrier, streams)
        append_announced(prepared)
        created = selectors.patterns_of(actor=actor).in_bulk([row.pk for row in rows])
    return [created[row.pk] for row in rows]


def change_pattern(
    *, actor: Actor, pattern: StoredPattern, changes: Mapping[str, Any]
) -> StoredPattern:
    """Add a version of a pattern, whose row is locked, which replaces the current one at one
    position of each stream. It begins without partial matches. Changes that leave everything as it
    is change nothing, except that a pattern that the hub suspended begins again. Raises what
    `create_patterns` raises.
    """
    group = PatternGroup.objects.select_for_update().get(pk=pattern.group_id)
    access.require_group(actor, group)
    suspended = pattern.state == PatternStatus.State.SUSPENDED
    old = PatternDefinition(pattern.language, pattern.text, pattern.once, pattern.recent, suspended)
    new = old._replace(**changes)
    if new == old:
        return pattern
    tree = parsed(new)
    access.require_targets(actor, pattern.client_id, [tree])
    _require_cheap(group.pk, tree.cost, besides=pattern.pk)
    connection = raw_connection()
    barrier = new_barrier(connection)
    PatternVersion.objects.filter(CURRENT, pattern=pattern).update(until_barrier=barrier)
    version = _version(pattern, pattern.version + 1, new, tree.cost, barrier)
    version.save(force_insert=True)
    announcement = _announcement("changed", pattern.client_name, pattern, version)
    prepared = prepare(zone=actor.zone, announcements=[announcement])
    fill_barrier(connection, barrier, group.streams)
    append_announced(prepared)
    return selectors.patterns_of(actor=actor).get(pk=pattern.pk)


def delete_pattern(*, actor: Actor, pattern: StoredPattern) -> None:
    """Delete a pattern, whose row is locked: no event above the barrier concerns it. Raises
    Forbidden.
    """
    group = PatternGroup.objects.select_for_update().get(pk=pattern.group_id)
    access.require_group(actor, group)
    connection = raw_connection()
    barrier = new_barrier(connection)
    [version] = PatternVersion.objects.filter(CURRENT, pattern=pattern)
    PatternVersion.objects.filter(pk=version.pk).update(until_barrier=barrier)
    version.from_barrier_id = barrier
    StoredPattern.objects.filter(pk=pattern.pk).update(deleted_at=TransactionNow())
    PatternGroup.objects.filter(pk=group.pk).update(patterns=F("patterns") - 1)
    announcement = _announcement("deleted", pattern.client_name, pattern, version)
    prepared = prepare(zone=actor.zone, announcements=[announcement])
    fill_barrier(connection, barrier, group.streams)
    append_announced(prepared)


def _parsed(index: int, definition: PatternDefinition) -> ParsedPattern:
    try:
        return parsed(definition)
    except EventHubError as error:
        error.index = index
        raise


def _lock_groups(
    actor: Actor, client_id: int, items: Sequence[NewPattern]
) -> dict[str, PatternGroup]:
    """Lock the groups that the items name, and return them by name."""
    names = {item.group for item in items}
    found = PatternGroup.objects.live().filter(client_id=client_id, name__in=names)
    groups = {group.name: group for group in found.select_for_update().order_by("pk")}
    for index, item in enumerate(items):
        if item.group not in groups:
            raise UnknownPatternGroup(index=index, field="group")
    for group in groups.values():
        access.require_group(actor, group)
    return groups


def _refuse_taken(groups: Mapping[str, PatternGroup], items: Sequence[NewPattern]) -> None:
    """Raise PatternExists for the first item whose name another pattern of its group has."""
    live = StoredPattern.objects.live().filter(
        group__in=groups.values(), name__in={item.name for item in items}
    )
    taken = set(live.values_list("group__name", "name"))
    for index, item in enumerate(items):
        if (item.group, item.name) in taken:
            raise PatternExists(index=index, field="name")
        taken.add((item.group, item.name))


def _admit(
    groups: Mapping[str, PatternGroup], items: Sequence[NewPattern], trees: Sequence[ParsedPattern]
) -> None:
    """Count the items in their groups. Raises LimitReached, PatternsTooCostly at the index of the
    first one that is too much.
    """
    used = {group.pk: _cost_of(group.pk) for group in groups.values()}
    for index, (item, tree) in enumerate(zip(items, trees, strict=True)):
        group = groups[item.group]
        group.patterns += 1
        if group.patterns > limits.PATTERNS_PER_GROUP_MAX:
            message = f"A group has at most {limits.PATTERNS_PER_GROUP_MAX:,} patterns; use another"
            raise LimitReached(f"{message} one.", limit=limits.PATTERNS_PER_GROUP_MAX, index=index)
        if tree.cost and used[group.pk] + tree.cost > limits.FILTERS_TRIED_MAX:
            error = PatternsTooCostly(cost=tree.cost, used=used[group.pk])
            error.index = index
            raise error
        used[group.pk] += tree.cost


def _require_cheap(group_id: int, cost: int, *, besides: int) -> None:
    used = _cost_of(group_id, besides=besides) if cost else 0
    if used + cost > limits.FILTERS_TRIED_MAX:
        raise PatternsTooCostly(cost=cost, used=used)


def _cost_of(group_id: int, *, besides: int = 0) -> int:
    current = PatternVersion.objects.filter(CURRENT, group_id=group_id)
    found = current.exclude(pattern_id=besides).aggregate(total=Sum("cost"))
    return int(found["total"] or 0)


def _version(
    row: StoredPattern, number: int, definition: PatternDefinition, cost: int, barrier: int
) -> PatternVersion:
    return PatternVersion(
        pattern=row,
        group_id=row.group_id,
        number=number,
        cost=cost,
        from_barrier_id=barrier,
        **definition._asdict(),
    )


def _announcement(
    change: str, client: str, row: StoredPattern, version: PatternVersion
) -> Announcement:
    attributes = {
        "client": client,
        "pattern": row.pk,
        "name": row.name,
        "pattern_group": row.group_id,
        "version": version.number,
        "barrier": version.from_barrier_id,
        "language": version.language,
        "suspended": version.suspended,
    }
    return Announcement(
        f"pattern.{change}", attributes, Resource("pattern", row.zone_id, str(row.pk))
    )
