"""Drops segments by the streams' policies and the hub's storage budget. A drop changes the rows of
sealed segments, so it takes effect for every reader at once; it is announced in the same
transaction. SQL module.

Partitions are dropped later (cleaning.py). Time is an argument. A dropped segment that is archived
stays readable there and is not announced as trimmed.
"""

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from eventhub.base import limits, metrics
from eventhub.base.errors import EventHubError
from eventhub.base.logs import get_logger
from eventhub.eventlog.append import append_batch
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.retention.quota import StorageBudget
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("eventhub/eventlog/sql/retention.sql")

LOCK_SYSTEM = queries.load("eventhub/eventlog/sql/streams.sql")["lock_system"]

TRIMMED = "stream.trimmed"
PLANNED = "plan"  # the removal reason of a segment that was dropped by an operator's plan


async def _nothing_needed(_connection: Connection) -> dict[int, int]:
    return {}


async def _no_names(_connection: Connection, _zone_ids: Sequence[int]) -> dict[int, str]:
    return {}


async def _released(_connection: Connection, _partition_id: int) -> bool:
    return True


async def _nothing_shed(_connection: Connection, _pressed: bool) -> bool:
    return False


async def _unbounded(_connection: Connection, _budget: StorageBudget) -> None:
    return None


async def _without_quotas(_connection: Connection) -> None:
    return None


class RetentionHooks(NamedTuple):
    """The functions of other packages that retention calls; the composition root provides them."""

    # the lowest sequence of each stream that a durable cursor still needs
    needs: Callable[[Connection], Awaitable[dict[int, int]]] = _nothing_needed
    # the names of zones
    zones: Callable[[Connection, Sequence[int]], Awaitable[dict[int, str]]] = _no_names
    # called before a partition's events are dropped; False: not yet
    release: Callable[[Connection, int], Awaitable[bool]] = _released
    # drop one partition of data that outlived its events; True if there may be more
    shed: Callable[[Connection, bool], Awaitable[bool]] = _nothing_shed
    # drop other data that exceeds its own bounds, and announce it
    bound: Callable[[Connection, StorageBudget], Awaitable[None]] = _unbounded
    # mark and announce the quotas of tenants that are reached
    check_quotas: Callable[[Connection], Awaitable[None]] = _without_quotas


class Trimmed(NamedTuple):
    """The segments of one stream that were removed for one reason."""

    stream_id: int
    zone_id: int | None
    stream: str
    tier: str
    reason: str
    segments: int
    events: int
    bytes: int


class _Leaving(NamedTuple):
    """A segment to be dropped, and the reason."""

    id: int
    reason: str


class _Readable(NamedTuple):
    """The first readable sequence of a stream."""

    stream_id: int
    first: int


async def roll_due(connection: Connection, now_us: int, segment_bytes_max: int) -> int:
    """Seal open segments that are older than their streams allow, or too large for a partition
    (EMC-25). Return how many.
    """
    bounds = {
        "now_us": now_us,
        "bytes_max": segment_bytes_max,
        "streams_max": limits.RETAIN_STREAMS_MAX,
    }
    found = await scalars(connection).execute(SQL["rolls_due"], bounds)
    return await _roll(connection, await found.fetchall())


async def roll_for_space(connection: Connection, streams_max: int) -> int:
    """Seal the largest open segments, because no sealed one can be dropped. Return how many."""
    found = await scalars(connection).execute(SQL["rolls_for_space"], {"streams_max": streams_max})
    return await _roll(connection, await found.fetchall())


async def _roll(connection: Connection, stream_ids: list[int]) -> int:
    if not stream_ids:
        return 0
    count = await (await scalars(connection).execute(SQL["roll"], (stream_ids,))).fetchone()
    return int(count or 0)


async def drop_by_policy(
    connection: Connection, hooks: RetentionHooks, now_us: int
) -> list[Trimmed]:
    """Drop the segments that their streams' policies do not retain (EMC-23, EMC-26), a bounded
    number at a time.
    """
    needed = await hooks.needs(connection)
    bounds = {
        "now_us": now_us,
        "streams": list(needed),
        "needed": list(needed.values()),
        "segments_max": limits.RETAIN_SEGMENTS_MAX,
    }
    found = await cursor_of(connection, _Leaving).execute(SQL["drops_by_policy"], bounds)
    return await _drop(connection, hooks, await found.fetchall(), now_us)


async def drop_oldest(
    connection: Connection, hooks: RetentionHooks, now_us: int, *, stored_bytes: int, reason: str
) -> list[Trimmed]:
    """Drop the oldest sealed segments of the hub that hold so many bytes together (EMC-24), also
    those that durable cursors need, but none under a hold. Empty if none can be dropped.
    """
    bounds = {
        "now_us": now_us,
        "bytes": stored_bytes,
        "system_s": limits.RETAIN_SYSTEM_S_MIN,
        "segments_max": limits.RETAIN_SEGMENTS_MAX,
    }
    found = await (await scalars(connection).execute(SQL["drops_for_space"], bounds)).fetchall()
    return await _drop(connection, hooks, [_Leaving(id, reason) for id in found], now_us)


class Planned(NamedTuple):
    """A segment named by a plan. Both fields must match, or the id is another segment's."""

    segment_id: int
    segment: str  # its UUID


async def retained_by(connection: Connection, hooks: RetentionHooks, planned: Planned) -> str:
    """Return what retains a segment now, regardless of its policy: `hold`, `needed` (by a durable
    cursor), `not_archived`, `open`, or `gone` if it is no longer live. Empty: nothing.
    """
    needed = await hooks.needs(connection)
    values = {"streams": list(needed), "needed": list(needed.values()), **planned._asdict()}
    reason = await (await scalars(connection).execute(SQL["retained_by"], values)).fetchone()
    return "gone" if reason is None else str(reason)


async def drop_planned(
    connection: Connection, hooks: RetentionHooks, planned: Planned, now_us: int
) -> str:
    """Drop one segment named by a plan, or return what retains it, as `retained_by` does.

    Policies and holds change under the lock of the head of `system` (streams.py), so a result under
    it holds until the transaction ends.
    """
    reason = await retained_by(connection, hooks, planned)
    if reason:
        return reason
    await _keep_state(connection, planned.segment_id)
    async with connection.transaction():
        await connection.execute(LOCK_SYSTEM)
        reason = await retained_by(connection, hooks, planned)
        if reason:
            return reason
        values = {"segments": [planned.segment_id], "reasons": [PLANNED], "now_us": now_us}
        trimmed = await _remove(connection, hooks, values)
    _report(trimmed)
    return "" if trimmed else "gone"


async def still_live(connection: Connection, segments: Sequence[int]) -> set[int]:
    """Return those of the segments that are in the database."""
    found = await scalars(connection).execute(SQL["still_live"], ([*segments],))
    return set(await found.fetchall())


async def is_to_be_cleaned(connection: Connection, planned: Planned, partition_id: int) -> bool:
    """Return whether a live segment is still in a partition that is no longer written to, as the
    plan says.
    """
    values = {**planned._asdict(), "partition_id": partition_id}
    return (await connection.execute(SQL["to_be_cleaned"], values)).rowcount > 0


async def _drop(
    connection: Connection, hooks: RetentionHooks, found: Sequence[_Leaving], now_us: int
) -> list[Trimmed]:
    """Drop segments. The state of keyed streams outlives them."""
    if not found:
        return []
    segments = [one.id for one in found]
    values = {"segments": segments, "reasons": [one.reason for one in found], "now_us": now_us}
    for segment in segments:
        await _keep_state(connection, segment)
    async with connection.transaction():
        trimmed = await _remove(connection, hooks, values)
    _report(trimmed)
    return trimmed


async def _remove(
    connection: Connection, hooks: RetentionHooks, values: dict[str, Any]
) -> list[Trimmed]:
    """Mark segments as removed and announce it, last in the caller's transaction."""
    trimmed = await (await cursor_of(connection, Trimmed).execute(SQL["drop"], values)).fetchall()
    drafts = await _announcements(connection, hooks, trimmed)
    if drafts:
        await append_in_turn(connection, drafts)
    return trimmed


def _report(trimmed: Sequence[Trimmed]) -> None:
    for each in trimmed:
        metrics.DROPPED_EVENTS.labels(reason=each.reason).inc(each.events)
        log.info("segments_removed", **each._asdict())


async def _keep_state(connection: Connection, segment: int) -> None:
    """Copy the events that are the latest of their keys, in statements of bounded length."""
    bounds = {"segment": segment, "keys_max": limits.STATE_COPY_KEYS_MAX}
    while (await connection.execute(SQL["keep_state"], bounds)).rowcount:
        pass


async def append_in_turn(connection: Connection, drafts: Sequence[Draft]) -> None:
    """Append events of `system` last in the caller's transaction. Raises their refusal."""
    for outcome in (await append_batch(connection, [drafts])).outcomes:
        if isinstance(outcome, EventHubError):
            raise outcome


async def _announcements(
    connection: Connection, hooks: RetentionHooks, trimmed: Sequence[Trimmed]
) -> list[Draft]:
    removed = [each for each in trimmed if each.tier == "dropped" and each.events]
    if not removed:
        return []
    names = await hooks.zones(connection, list({each.zone_id for each in removed if each.zone_id}))
    query = cursor_of(connection, _Readable)
    await query.execute(SQL["first_readable"], ([each.stream_id for each in removed],))
    first = {row.stream_id: row.first for row in await query.fetchall()}
    drafts: list[Draft] = []
    for zone_id, of_zone in groupby(removed, key=lambda each: each.zone_id):
        zone = None if zone_id is None else names.get(zone_id, "")
        drafts += drafts_of(zone, [_announcement(each, first) for each in of_zone])
    return drafts


def _announcement(trimmed: Trimmed, first: dict[int, int]) -> Announcement:
    return Announcement(
        TRIMMED,
        {
            "stream": trimmed.stream,
            "first": first.get(trimmed.stream_id),
            "segments": trimmed.segments,
            "events": trimmed.events,
            "bytes": trimmed.bytes,
            "reason": trimmed.reason,
        },
    )
