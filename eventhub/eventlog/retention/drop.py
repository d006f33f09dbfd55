"""Drops what streams' policies and the hub's room let go: sealed segments by their rows, at once
for every reader, announced in the same transaction. SQL module.

Partitions go later (clean.py). Time is an argument. A dropped segment that is archived stays
readable there and is not announced as trimmed.
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
PLANNED = "plan"  # why a segment left that an operator's plan named


async def _nothing_needed(_connection: Connection) -> dict[int, int]:
    return {}


async def _no_names(_connection: Connection, _zone_ids: Sequence[int]) -> dict[int, str]:
    return {}


async def _released(_connection: Connection, _group: int) -> bool:
    return True


async def _nothing_shed(_connection: Connection, _pressed: bool) -> bool:
    return False


async def _unbounded(_connection: Connection, _room: StorageBudget) -> None:
    return None


class RetentionHooks(NamedTuple):
    """What other rooms have to say; the composition root fills it in."""

    # the lowest sequence of each stream that a durable cursor still needs
    needs: Callable[[Connection], Awaitable[dict[int, int]]] = _nothing_needed
    # the names of zones
    zones: Callable[[Connection, Sequence[int]], Awaitable[dict[int, str]]] = _no_names
    # called before a group's events go; False: not yet
    release: Callable[[Connection, int], Awaitable[bool]] = _released
    # drop one partition of what outlived its events; True if there may be more
    shed: Callable[[Connection, bool], Awaitable[bool]] = _nothing_shed
    # drop what others keep of events beyond their own bounds, and announce it
    bound: Callable[[Connection, StorageBudget], Awaitable[None]] = _unbounded


class Trimmed(NamedTuple):
    """What left one stream for one reason."""

    stream_id: int
    zone_id: int | None
    stream: str
    tier: str
    why: str
    segments: int
    events: int
    bytes: int


class _Leaving(NamedTuple):
    """A segment that is to be dropped, and the reason."""

    id: int
    why: str


class _Readable(NamedTuple):
    """The first sequence of a stream that can be read."""

    stream_id: int
    first: int


async def roll_due(connection: Connection, now_us: int, segment_bytes_max: int) -> int:
    """Seal open segments that are older than their streams let them be, or too large for a group
    (EMC-25). How many.
    """
    bounds = {
        "now_us": now_us,
        "bytes_max": segment_bytes_max,
        "streams_max": limits.RETAIN_STREAMS_MAX,
    }
    found = await scalars(connection).execute(SQL["rolls_due"], bounds)
    return await _roll(connection, await found.fetchall())


async def roll_for_room(connection: Connection, streams_max: int) -> int:
    """Seal the largest open segments, because nothing that is sealed is left to drop."""
    found = await scalars(connection).execute(SQL["rolls_for_room"], {"streams_max": streams_max})
    return await _roll(connection, await found.fetchall())


async def _roll(connection: Connection, stream_ids: list[int]) -> int:
    if not stream_ids:
        return 0
    count = await (await scalars(connection).execute(SQL["roll"], (stream_ids,))).fetchone()
    return int(count or 0)


async def drop_by_policy(
    connection: Connection, rooms: RetentionHooks, now_us: int
) -> list[Trimmed]:
    """Drop what the streams' own policies let go (EMC-23, EMC-26), a bounded number of segments."""
    needed = await rooms.needs(connection)
    bounds = {
        "now_us": now_us,
        "streams": list(needed),
        "needed": list(needed.values()),
        "segments_max": limits.RETAIN_SEGMENTS_MAX,
    }
    found = await cursor_of(connection, _Leaving).execute(SQL["drops_by_policy"], bounds)
    return await _drop(connection, rooms, await found.fetchall(), now_us)


async def drop_oldest(
    connection: Connection, rooms: RetentionHooks, now_us: int, *, stored_bytes: int, why: str
) -> list[Trimmed]:
    """Drop the oldest sealed segments of the hub that hold so many bytes together (EMC-24): what
    durable cursors need too, nothing under a hold. Empty if there is nothing left to drop.
    """
    bounds = {
        "now_us": now_us,
        "bytes": stored_bytes,
        "system_s": limits.RETAIN_SYSTEM_S_MIN,
        "segments_max": limits.RETAIN_SEGMENTS_MAX,
    }
    found = await (await scalars(connection).execute(SQL["drops_for_room"], bounds)).fetchall()
    return await _drop(connection, rooms, [_Leaving(id, why) for id in found], now_us)


class Planned(NamedTuple):
    """A segment as a plan names it: both must be true, or it is another one's by now."""

    segment_id: int
    segment: str  # its UUID


async def retained_by(connection: Connection, rooms: RetentionHooks, planned: Planned) -> str:
    """What keeps a segment at this moment, whatever its policy lets go: `hold`, `needed` (by a
    durable cursor), `not_archived`, `open`, or `gone`: it has left already. Empty: nothing does.
    """
    needed = await rooms.needs(connection)
    values = {"streams": list(needed), "needed": list(needed.values()), **planned._asdict()}
    why = await (await scalars(connection).execute(SQL["retained_by"], values)).fetchone()
    return "gone" if why is None else str(why)


async def drop_planned(
    connection: Connection, rooms: RetentionHooks, planned: Planned, now_us: int
) -> str:
    """Drop one segment because a plan says so, or say what keeps it, as `retained_by`.

    Policies, and holds with them, change under the lock of the head of `system` (streams.py): what
    is found under it is so until the transaction ends.
    """
    why = await retained_by(connection, rooms, planned)
    if why:
        return why
    await _keep_state(connection, planned.segment_id)
    async with connection.transaction():
        await connection.execute(LOCK_SYSTEM)
        why = await retained_by(connection, rooms, planned)
        if why:
            return why
        values = {"segments": [planned.segment_id], "whys": [PLANNED], "now_us": now_us}
        trimmed = await _left(connection, rooms, values)
    _tell(trimmed)
    return "" if trimmed else "gone"


async def still_live(connection: Connection, segments: Sequence[int]) -> set[int]:
    """Those of the segments that are in the database."""
    found = await scalars(connection).execute(SQL["still_live"], ([*segments],))
    return set(await found.fetchall())


async def is_to_be_cleaned(connection: Connection, planned: Planned, partition_id: int) -> bool:
    """Whether a segment still lies in a group that is not written to any more, as the plan says."""
    values = {**planned._asdict(), "partition_id": partition_id}
    return (await connection.execute(SQL["to_be_cleaned"], values)).rowcount > 0


async def _drop(
    connection: Connection, rooms: RetentionHooks, found: Sequence[_Leaving], now_us: int
) -> list[Trimmed]:
    """The state of keyed streams outlives their segments."""
    if not found:
        return []
    segments = [one.id for one in found]
    values = {"segments": segments, "whys": [one.why for one in found], "now_us": now_us}
    for segment in segments:
        await _keep_state(connection, segment)
    async with connection.transaction():
        trimmed = await _left(connection, rooms, values)
    _tell(trimmed)
    return trimmed


async def _left(
    connection: Connection, rooms: RetentionHooks, values: dict[str, Any]
) -> list[Trimmed]:
    """Mark segments as gone and announce it, last in the caller's transaction."""
    trimmed = await (await cursor_of(connection, Trimmed).execute(SQL["drop"], values)).fetchall()
    drafts = await _announcements(connection, rooms, trimmed)
    if drafts:
        await append_in_turn(connection, drafts)
    return trimmed


def _tell(trimmed: Sequence[Trimmed]) -> None:
    for each in trimmed:
        metrics.DROPPED_EVENTS.labels(reason=each.why).inc(each.events)
        log.info("segments_left", **each._asdict())


async def _keep_state(connection: Connection, segment: int) -> None:
    """Copy what is the latest of its key, in statements that are short whatever a segment holds."""
    bounds = {"segment": segment, "keys_max": limits.STATE_COPY_KEYS_MAX}
    while (await connection.execute(SQL["keep_state"], bounds)).rowcount:
        pass


async def append_in_turn(connection: Connection, drafts: Sequence[Draft]) -> None:
    """Append events of `system` last in the caller's transaction. Raises what refuses them."""
    for outcome in (await append_batch(connection, [drafts])).outcomes:
        if isinstance(outcome, EventHubError):
            raise outcome


async def _announcements(
    connection: Connection, rooms: RetentionHooks, trimmed: Sequence[Trimmed]
) -> list[Draft]:
    gone = [each for each in trimmed if each.tier == "dropped" and each.events]
    if not gone:
        return []
    names = await rooms.zones(connection, list({each.zone_id for each in gone if each.zone_id}))
    query = cursor_of(connection, _Readable)
    await query.execute(SQL["first_readable"], ([each.stream_id for each in gone],))
    first = {row.stream_id: row.first for row in await query.fetchall()}
    drafts: list[Draft] = []
    for zone_id, of_zone in groupby(gone, key=lambda each: each.zone_id):
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
            "why": trimmed.why,
        },
    )
