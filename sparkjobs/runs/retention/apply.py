"""The application of a retention plan, one segment after the other, each in a short transaction.
SQL module.

The state may have changed since the plan was made, so each action checks again what would retain
the segment (eventhub/eventlog/retention/drop.py). Such actions are refused with the reason, and the
others are done. Applying a plan twice changes nothing more.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Literal, NamedTuple

from eventhub.base.clock import Clock
from eventhub.eventlog.archive import catalog
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.open_file import OpenFile
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from eventhub.eventlog.retention import drop
from eventhub.eventlog.retention.drop import Planned, RetentionHooks
from eventhub.postgresql.connections import Connection
from sparkjobs.runs.retention.plan import PlannedAction

Done = Literal["done", "refused", "unchanged"]
_ALREADY_DONE = ("gone", "archived")  # the segment is in the planned state


class ActionOutcome(NamedTuple):
    """The outcome of one action. `reason`: a code of `retained_by` or `expedite`; empty if done."""

    action: PlannedAction
    outcome: Done
    reason: str


class ApplyTarget(NamedTuple):
    """The database and archive that actions apply to."""

    connection: Connection  # in autocommit mode
    hooks: RetentionHooks
    clock: Clock
    archive: ArchiveFolder | None
    is_unavailable: bool = False  # the archive did not answer, and is not tried again


async def apply_actions(
    target: ApplyTarget, actions: Sequence[PlannedAction], *, dry_run: bool = False
) -> AsyncGenerator[ActionOutcome]:
    """Apply actions in order, and yield their outcomes; drops that were done before come first, so
    that repeated requests make progress. `dry_run`: only report what would be done. Raises what
    psycopg raises; the yielded outcomes are final even then.
    """
    drops = {action.segment_id for action in actions if action.action == "drop"}
    dropped = drops - await drop.still_live(target.connection, [*drops])
    for action in actions:
        if action.segment_id in dropped:
            yield ActionOutcome(action, "unchanged", "gone")
    for action in actions:
        if action.segment_id in dropped:
            continue
        reason = await _apply(target, action, dry_run=dry_run)
        unavailable = target.is_unavailable or reason == ArchiveUnavailable.code
        target = target._replace(is_unavailable=unavailable)
        outcome: Done = "unchanged" if reason in _ALREADY_DONE else "refused" if reason else "done"
        yield ActionOutcome(action, outcome, reason)
        await asyncio.sleep(0)


async def _apply(target: ApplyTarget, action: PlannedAction, *, dry_run: bool) -> str:
    """Apply an action; return why it is not done, empty if it is."""
    planned = Planned(action.segment_id, action.segment)
    match action.action:
        case "drop":
            reason = await drop.retained_by(target.connection, target.hooks, planned)
            reason = reason or await _missing_copy(target, planned)
            if reason or dry_run:
                return reason
            now_us = target.clock.now_us()
            return await drop.drop_planned(target.connection, target.hooks, planned, now_us)
        case "archive" if target.archive is None:
            return "no_archive"
        case "archive":
            names = (action.segment_id, action.segment)
            return await catalog.expedite(target.connection, *names, act=not dry_run)
        case "compact":
            there = await drop.is_to_be_cleaned(target.connection, planned, action.partition_id)
            return "" if there else "gone"
    return "unknown_action"


async def _missing_copy(target: ApplyTarget, planned: Planned) -> str:
    """Return why the archived copy of a segment recorded as archived is unusable, in which case the
    database has the last good rows; empty if it is usable or none is recorded.
    """
    copy = await catalog.archived_copy(target.connection, planned.segment_id)
    if copy is None:
        return ""
    if target.archive is None:
        return "no_archive"
    if target.is_unavailable:
        return ArchiveUnavailable.code
    try:
        await asyncio.to_thread(OpenFile(target.archive, copy).check)
    except (ArchiveDamaged, ArchiveUnavailable) as error:
        return error.code
    return ""
