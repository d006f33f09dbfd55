"""What a pattern waits for (RDY-46): computed from the snapshot and the journal of its group, with
the engine that the forwarder runs. Django module.

A forwarder restores a group in the same way, so the answer is exact as of its last checkpoint, and
no process is asked.
"""

from collections.abc import Sequence
from itertools import dropwhile
from typing import Any

import orjson

from eventhub.access.principal import Actor
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.eventlog.stored import StoredEvent
from registrations.pattern_groups import access
from registrations.pattern_groups.consumed import ConsumedRun
from registrations.pattern_groups.definition import parse_text
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.pattern_groups.errors import StateUnavailable
from registrations.pattern_groups.journal_events import journal_reader
from registrations.pattern_groups.models import (
    PatternGroup,
    PatternJournal,
    PatternState,
    PatternStatus,
    StoredPattern,
)
from registrations.pattern_groups.shown import waiting_json
from registrations.pattern_groups.trial_selectors import hierarchy_of, owner_of
from registrations.pattern_groups.trial_turns import Pause, trials
from registrations.patterns.pattern_engine import EventPosition


def waiting_of(*, actor: Actor, pattern: StoredPattern) -> dict[str, Any]:
    """Return the partial matches of a pattern as of the last checkpoint of its group, the oldest
    keys first. Raises Forbidden, Unavailable, and StateUnavailable if the checkpoint cannot be
    computed now.
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
    with trials.run(owner_of(actor)) as pause:
        clock = SystemClock()
        until_s = clock.monotonic_s() + limits.PATTERN_WAITING_S_MAX

        def step() -> None:
            pause()
            if clock.monotonic_s() > until_s:
                raise StateUnavailable(retry_after_s=limits.PATTERN_WAITING_RETRY_S)

        engine = _engine(actor, group, pattern, step)
        number = pattern.version_id
        if engine is None or number not in engine.patterns:
            return found  # no forwarder has given it to its engine yet
        partitions, size = found["partitions"], 0
        for at, key in enumerate(engine.keys(number)):
            if (
                at >= limits.PATTERN_WAITING_KEYS_MAX
                or size > limits.PATTERN_ANSWER_BYTES_MAX
                or clock.monotonic_s() > until_s
            ):
                found["is_complete"] = False
                break
            waiting = engine.waiting(number, key)
            if waiting is not None:
                partitions.append({"key": key, "tree": waiting_json(waiting, names)})
                size += len(orjson.dumps(partitions[-1]))
            pause()
    return found


def _engine(
    actor: Actor, group: PatternGroup, pattern: StoredPattern, step: Pause
) -> HubEngine | None:
    """Return the engine of a group, with one pattern, as of the checkpoint. Raises StateUnavailable
    if there is too much to do, and what `step` raises.
    """
    engine = HubEngine(hierarchy_of(actor.zone_id))
    compiled = parse_text(pattern.language, pattern.text)
    hub = HubPattern(pattern.version_id, compiled, pattern.once, pattern.recent)
    # before the snapshot: one that is written in between replaces what was read of the journal
    journal = [*PatternJournal.objects.filter(group=group).order_by("first")]
    snapshot = PatternState.objects.filter(group=group).first()
    if snapshot is not None:
        journal = [row for row in journal if row.first > snapshot.position]
        if hub.number in snapshot.versions:
            engine.add(hub)
            engine.restore(bytes(snapshot.state))
    if hub.number not in engine.patterns:  # one that saw recent events is in the snapshot
        journal = [*dropwhile(lambda row: hub.number not in row.added, journal)]
    if sum(row.last - row.first + 1 for row in journal) > limits.PATTERN_WAITING_EVENTS_MAX:
        raise StateUnavailable(retry_after_s=limits.PATTERN_WAITING_RETRY_S)
    with journal_reader(read_env().database_url) as pages_of:
        for row in journal:
            if hub.number in row.added:
                engine.add(hub)
            if hub.number in row.removed:
                return None
            order = row.first
            for run in _runs(row):
                for events in pages_of(run):
                    _feed(engine, run, events, order, step)
                order += len(run)
    return engine


def _feed(
    engine: HubEngine, run: ConsumedRun, events: Sequence[StoredEvent], order: int, step: Pause
) -> None:
    """Feed a page of a run, whose first event has the order number `order`."""
    for stored in events:
        position = _position(order + stored.sequence - run.first, run.stream, stored)
        for _ in engine.steps(position, stored.event):
            step()
        step()


def _runs(row: PatternJournal) -> list[ConsumedRun]:
    columns = zip(row.streams, map(str, row.segments), row.firsts, row.lasts, strict=True)
    return [ConsumedRun(*one) for one in columns]


def _position(order: int, stream: int, stored: StoredEvent) -> EventPosition:
    return EventPosition(order, stream, stored.segment, stored.sequence, stored.appended_at_us)
