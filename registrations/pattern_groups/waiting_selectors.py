"""What a pattern waits for (RDY-46): computed from the snapshot and the journal of its group, with
the engine that the forwarder runs. Django module.

A forwarder restores a group in the same way, so the answer is exact as of its last checkpoint, and
no process is asked.
"""

from itertools import dropwhile, islice
from typing import Any

from eventhub.access.principal import Actor
from eventhub.base import limits
from eventhub.base.env import read_env
from eventhub.eventlog.stored import StoredEvent
from registrations.pattern_groups import access
from registrations.pattern_groups.consumed import ConsumedRun
from registrations.pattern_groups.definition import parse_text
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.pattern_groups.errors import StateUnavailable
from registrations.pattern_groups.journal_events import events_of_runs
from registrations.pattern_groups.models import (
    PatternGroup,
    PatternJournal,
    PatternState,
    PatternStatus,
    StoredPattern,
)
from registrations.pattern_groups.shown import waiting_json
from registrations.pattern_groups.trial_selectors import hierarchy_of
from registrations.patterns.pattern_engine import EventPosition


def waiting_of(*, actor: Actor, pattern: StoredPattern) -> dict[str, Any]:
    """Return the partial matches of a pattern as of the last checkpoint of its group, the oldest
    keys first. Raises Forbidden, StateUnavailable if the checkpoint cannot be computed now.
    """
    group = PatternGroup.objects.select_related("lease").get(pk=pattern.group_id)
    names = access.require_listen_to_group(actor, group)
    found = {
        "pattern": pattern.pk,
        "version": pattern.version,
        "status": pattern.state,
        "consumed": group.lease.position,
        "partitions": [],
        "is_complete": True,
    }
    if pattern.state != PatternStatus.State.RUNNING:
        return found
    engine = _engine(actor, group, pattern)
    number = pattern.version_id
    if engine is None or number not in engine.patterns:
        return found  # no forwarder has given it to its engine yet
    keys = [*islice(engine.keys(number), limits.PATTERN_WAITING_KEYS_MAX + 1)]
    found["is_complete"] = len(keys) <= limits.PATTERN_WAITING_KEYS_MAX
    for key in keys[: limits.PATTERN_WAITING_KEYS_MAX]:
        waiting = engine.waiting(number, key)
        if waiting is not None:
            found["partitions"].append({"key": key, "tree": waiting_json(waiting, names)})
    return found


def _engine(actor: Actor, group: PatternGroup, pattern: StoredPattern) -> HubEngine | None:
    """Return the engine of a group, with one pattern, as of the checkpoint."""
    engine = HubEngine(tuple(group.streams), hierarchy_of(actor.zone_id))
    compiled = parse_text(pattern.language, pattern.text)
    hub = HubPattern(pattern.version_id, compiled, pattern.once, pattern.recent)
    snapshot = PatternState.objects.filter(group=group).first()
    if snapshot is not None and hub.number in snapshot.versions:
        engine.add(hub)
        engine.restore(bytes(snapshot.state))
    journal = [*PatternJournal.objects.filter(group=group).order_by("first")]
    if hub.number not in engine.patterns:  # one that saw recent events is in the snapshot
        journal = [*dropwhile(lambda row: hub.number not in row.added, journal)]
    if sum(row.last - row.first + 1 for row in journal) > limits.PATTERN_WAITING_EVENTS_MAX:
        raise StateUnavailable(retry_after_s=limits.PATTERN_WAITING_RETRY_S)
    runs = [run for row in journal for run in _runs(row)]
    events = iter(events_of_runs(read_env().database_url, runs))
    for row in journal:
        if hub.number in row.added:
            engine.add(hub)
        if hub.number in row.removed:
            return None
        order = row.first
        for run in _runs(row):
            for stored in next(events):
                position = _position(order + stored.sequence - run.first, run.stream, stored)
                engine.feed(position, stored.event)
            order += len(run)
    return engine


def _runs(row: PatternJournal) -> list[ConsumedRun]:
    columns = zip(row.streams, map(str, row.segments), row.firsts, row.lasts, strict=True)
    return [ConsumedRun(*one) for one in columns]


def _position(order: int, stream: int, stored: StoredEvent) -> EventPosition:
    return EventPosition(order, stream, stored.segment, stored.sequence, stored.appended_at_us)
