"""Writes the checkpoints of a group: position, journal or snapshot, statuses and outputs, in one
transaction under the lease. SQL module.

The outputs are appended last, so that the heads of their streams are locked briefly.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from psycopg.types.numeric import Int8

from delivery.forward.leases import LeaseLost
from delivery.patterns.group_tables import SQL, GroupLease
from delivery.patterns.outputs import OutputEvent
from delivery.patterns.totals import GroupTotals, StatusRow
from eventhub.base import limits
from eventhub.event import protobuf_codec
from eventhub.eventlog import append
from eventhub.eventlog.append import append_proven
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.system import drafts_of
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection, answered_within
from eventhub.postgresql.rows import fetch_all
from registrations.pattern_groups.consumed import ConsumedRun


class NewSnapshot(NamedTuple):
    """The state of the engines, and the versions that they have."""

    versions: list[int]
    state: bytes


class Checkpoint(NamedTuple):
    """How far a group is, and what it did since `start`, its last checkpoint. `snapshot` None: the
    journal gets the runs, with the versions that were added and removed before them.
    """

    start: int
    position: int
    cursors: Mapping[int, Cursor]
    runs: Sequence[ConsumedRun]
    added: Sequence[int]
    removed: Sequence[int]
    outputs: Sequence[OutputEvent]
    snapshot: NewSnapshot | None


class _StreamRow(NamedTuple):
    id: int
    name: str
    is_full: bool


async def write(
    connection: Connection,
    lease: GroupLease,
    zone: tuple[int, str],
    checkpoint: Checkpoint,
    totals: GroupTotals,
) -> dict[int, int]:
    """Write a checkpoint; return the new heads, {stream: sequence}. Raises LeaseLost if nothing was
    written, and what psycopg raises. `zone`: its id and its name.
    """
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        drafts = await _drafts(connection, zone[0], checkpoint.outputs, totals)
        rows, announcements = totals.written()
        drafts += drafts_of(zone[1], announcements)
        if not drafts and not rows:
            await _move(connection, lease, checkpoint)
            return {}
        async with connection.transaction():
            await _move(connection, lease, checkpoint)
            if rows:
                await connection.execute(SQL["write_statuses"], _statuses(lease, rows))
            heads = await append_proven(connection, drafts) if drafts else {}
        if heads:
            await connection.execute(append.SQL["notify"], (append.heads_text(heads),))
        return heads


async def _move(connection: Connection, lease: GroupLease, checkpoint: Checkpoint) -> None:
    cursors = checkpoint.cursors
    values: dict[str, Any] = {
        "group_id": Int8(lease.group_id),
        "epoch": Int8(lease.epoch),
        "from_position": Int8(checkpoint.start),
        "position": Int8(checkpoint.position),
        "streams": int8_array([*cursors]),
        "segments": text_array([one.segment for one in cursors.values()]),
        "sequences": int8_array([one.sequence for one in cursors.values()]),
        "lease_s": limits.FORWARD_LEASE_S,
    }
    query = "move"
    if checkpoint.snapshot is not None:
        query = "snapshot"
        values["versions"] = int8_array(checkpoint.snapshot.versions)
        values["state"] = checkpoint.snapshot.state
    else:
        runs = checkpoint.runs
        values["first"] = Int8(checkpoint.start + 1)
        values["run_streams"] = int8_array([run.stream for run in runs])
        values["run_segments"] = text_array([run.segment for run in runs])
        values["run_firsts"] = int8_array([run.first for run in runs])
        values["run_lasts"] = int8_array([run.last for run in runs])
        values["added"] = int8_array(list(checkpoint.added))
        values["removed"] = int8_array(list(checkpoint.removed))
    moved = await connection.execute(SQL[query], values)
    if not moved.rowcount:
        raise LeaseLost


async def _drafts(
    connection: Connection, zone_id: int, outputs: Sequence[OutputEvent], totals: GroupTotals
) -> list[Draft]:
    """Build the drafts of outputs; those whose stream takes none are lost."""
    if not outputs:
        return []
    values = {
        "zone_id": zone_id,
        "ids": int8_array(list({one.stream for one in outputs if isinstance(one.stream, int)})),
        "names": text_array(list({one.stream for one in outputs if isinstance(one.stream, str)})),
    }
    found = await fetch_all(connection, _StreamRow, SQL["output_streams"], values)
    ids: dict[int | str, int] = {}
    for id, name, _ in found:
        ids[id] = ids[name] = id
    is_full = any(one.is_full for one in found)
    drafts: list[Draft] = []
    for one in outputs:
        stream_id = ids.get(one.stream)
        if stream_id is None:
            totals.lose(one.running, "unknown_stream", 1)
            continue
        if is_full:
            totals.lose(one.running, "zone_storage_full", 1)
            continue
        payload = protobuf_codec.encode(one.event)
        drafts.append(Draft(stream_id, one.event.mask, payload))
    return drafts


def _statuses(lease: GroupLease, rows: Sequence[StatusRow]) -> dict[str, Any]:
    return {
        "group_id": lease.group_id,
        "patterns": int8_array([row.pattern for row in rows]),
        "versions": int8_array([row.version for row in rows]),
        "states": text_array([row.state for row in rows]),
        "faults": text_array([_json(row.fault) for row in rows]),
        "matches": int8_array([row.matches for row in rows]),
        "dropped": text_array([_json(row.dropped) for row in rows]),
    }


def _json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
