"""Carries a retention plan out, one segment after the other, each in a short transaction. Sql
module. SQL module.

Much may have changed since the plan was made, so what would keep a segment is looked up again at
the moment of the act (eventhub/eventlog/retention/drop.py). What is kept is refused with the
reason, and the rest is done; carried out again, a plan changes nothing more.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Literal, NamedTuple

from eventhub.base.clock import Clock
from eventhub.eventlog.archive import catalog
from eventhub.eventlog.archive.errors import ArchiveUnavailable
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.open_file import OpenFile
from eventhub.eventlog.errors import ArchiveDamaged
from eventhub.eventlog.retention import drop
from eventhub.eventlog.retention.drop import Planned, RetentionHooks
from eventhub.postgresql.connections import Connection
from sparkjobs.runs.retention.plan import PlannedAction

Done = Literal["done", "refused", "unchanged"]
_SETTLED = ("gone", "archived")  # what the act would lead to is so already


class ActionOutcome(NamedTuple):
    """The outcome of one act. `why`: as `retained_by` and `expedite` return it; empty if done."""

    act: PlannedAction
    outcome: Done
    why: str


class ApplyTarget(NamedTuple):
    """What the acts are done to."""

    connection: Connection  # in autocommit mode
    hooks: RetentionHooks
    clock: Clock
    archive: ArchiveFolder | None
    is_away: bool = False  # the archive did not answer, and is not asked again


async def apply_actions(
    hub: ApplyTarget, acts: Sequence[PlannedAction], *, dry_run: bool = False
) -> AsyncGenerator[ActionOutcome]:
    """Do what a plan says, in its order, after all drops that were done before, so that who goes on
    with a large plan gets on. `dry_run`: say what would be done now. Raises what psycopg raises;
    what was told is done then.
    """
    drops = {act.segment_id for act in acts if act.action == "drop"}
    gone = drops - await drop.still_live(hub.connection, [*drops])
    for act in acts:
        if act.segment_id in gone:
            yield ActionOutcome(act, "unchanged", "gone")
    for act in acts:
        if act.segment_id in gone:
            continue
        why = await _act(hub, act, dry_run=dry_run)
        hub = hub._replace(is_away=hub.is_away or why == ArchiveUnavailable.code)
        outcome: Done = "unchanged" if why in _SETTLED else "refused" if why else "done"
        yield ActionOutcome(act, outcome, why)
        await asyncio.sleep(0)


async def _act(hub: ApplyTarget, act: PlannedAction, *, dry_run: bool) -> str:
    """Why it is not done; empty: it is."""
    planned = Planned(act.segment_id, act.segment)
    match act.action:
        case "drop":
            why = await drop.retained_by(hub.connection, hub.hooks, planned)
            why = why or await _no_copy(hub, planned)
            if why or dry_run:
                return why
            now_us = hub.clock.now_us()
            return await drop.drop_planned(hub.connection, hub.hooks, planned, now_us)
        case "archive" if hub.archive is None:
            return "no_archive"
        case "archive":
            names = (act.segment_id, act.segment)
            return await catalog.expedite(hub.connection, *names, act=not dry_run)
        case "compact":
            there = await drop.is_to_be_cleaned(hub.connection, planned, act.partition_id)
            return "" if there else "gone"
    return "unknown_action"


async def _no_copy(hub: ApplyTarget, planned: Planned) -> str:
    """Why the archive does not stand in for a segment that it is said to have: the database's rows
    are the last that are good then.
    """
    copy = await catalog.archived_copy(hub.connection, planned.segment_id)
    if copy is None:
        return ""
    if hub.archive is None:
        return "no_archive"
    if hub.is_away:
        return ArchiveUnavailable.code
    try:
        await asyncio.to_thread(OpenFile(hub.archive, copy).check)
    except (ArchiveDamaged, ArchiveUnavailable) as error:
        return error.code
    return ""
