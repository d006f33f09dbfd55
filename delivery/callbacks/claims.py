"""Claims deliveries that are due and loads what they need to be posted. SQL module.

The statements are in delivery/sql/callbacks.sql; what they promise is said there. Every function
takes an open connection in autocommit mode and raises what psycopg raises when the database is
away; a claim that was made and not heard of ends by itself.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import uuid4

from delivery.callbacks.body import Place
from eventhub.base import limits
from eventhub.postgresql import arrays, queries
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection, connect
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.endpoints.rows import Format
from registrations.filters.report import Report, stored_report

SQL = queries.load("delivery/sql/callbacks.sql")


class Lane(NamedTuple):
    """What is delivered in order: a stream's events for one endpoint, in one run."""

    endpoint_id: int
    stream_id: int
    run: int


class Endpoint(NamedTuple):
    """Where a delivery goes. `secret` is sealed."""

    id: int
    url: str
    secret: bytes
    client_id: int
    format: Format


class Failing(NamedTuple):
    """How an endpoint fails. `backs_off`: with one request at a time, when its pause is over.
    `spares`: tries do not count meanwhile.
    """

    failures: int  # in a row
    backs_off: bool
    spares: bool


class Found(NamedTuple):
    """What a scan saw from one place to another; `last` is where the next begins, None at the
    end.
    """

    due: dict[Any, Endpoint]  # by endpoint id, or by lane
    deleted: frozenset[int]  # endpoints whose deliveries are to be cancelled
    failing: Mapping[int, Failing | None]  # of all endpoints that were seen
    last: Any


class Claimed(NamedTuple):
    """A delivery in this worker's hands, tried so many times before. `probe`: the one request to an
    endpoint that backs off; `spares`: it does not count.
    """

    partition_id: int
    endpoint_id: int
    segment_id: int
    sequence: int
    run: int
    stream_id: int
    registrations: list[int]
    attempts: int
    uncounted_attempts: int
    payload: bytes | None  # the event's stored bytes, if the delivery has outlived its group
    created_at_us: int
    gap_first: int | None  # no event is owed, but word that those from here to `sequence` are gone
    gap_reason: str | None
    version_ids: list[int] | None  # whose reports say what is told; None: the event
    token: str
    probe: bool
    spares: bool

    @property
    def lane(self) -> Lane:
        return Lane(self.endpoint_id, self.stream_id, self.run)


class _Placed(NamedTuple):
    """A delivery of a lane, and where in it it stands, from 1 on."""

    claimed: Claimed
    place: int


class _Seen(NamedTuple):
    """An endpoint with deliveries that wait; nothing but its id if it is gone."""

    endpoint: Endpoint
    is_due: bool
    is_deleted: bool
    failures: int | None
    backs_off: bool
    spares: bool

    def failing(self) -> Failing | None:
        if self.failures is None:
            return None
        return Failing(self.failures, self.backs_off, self.backs_off and self.spares)


class _SeenLane(NamedTuple):
    """A lane with deliveries that wait."""

    seen: _Seen
    stream_id: int
    run: int

    @property
    def lane(self) -> Lane:
        return Lane(self.seen.endpoint.id, self.stream_id, self.run)


class ClaimedEvent(NamedTuple):
    """An event's bytes, as they are stored."""

    segment_id: int
    sequence: int
    appended_at_us: int
    payload: bytes


class _Segment(NamedTuple):
    id: int
    segment: str
    stream: str


class _Reported(NamedTuple):
    id: int
    report: str


async def open_connection(url: str, name: str) -> Connection:
    """A connection that plans every statement over the indexes. Raises DatabaseUnavailable."""
    connection = await connect(url, name=f"eventhub {name}")
    arrays.adapt(connection)
    await connection.execute(SQL["settings"])
    return connection


async def scan_parallel(connection: Connection, after: int) -> Found:
    """The endpoints with deliveries due, from the one behind `after` on."""
    bounds = {"after": after, "endpoints_max": limits.CALLBACK_SCAN_ENDPOINTS_MAX, **_pauses()}
    query = cursor_of(connection, _Seen)
    rows = await (await query.execute(SQL["scan_parallel"], bounds, binary=True)).fetchall()
    due = {row.endpoint.id: row.endpoint for row in rows if row.is_due}
    last = rows[-1].endpoint.id if _was_cut(rows) else None
    return Found(due, *_states(rows), last)


async def scan_ordered(connection: Connection, after: Lane) -> Found:
    """The lanes that are free and have a delivery due, from the one behind `after` on."""
    bounds = {
        "endpoint": after.endpoint_id,
        "stream": after.stream_id,
        "run": after.run,
        "lanes_max": limits.CALLBACK_SCAN_ENDPOINTS_MAX,
        **_pauses(),
    }
    query = cursor_of(connection, _SeenLane)
    rows = await (await query.execute(SQL["scan_ordered"], bounds, binary=True)).fetchall()
    due = {row.lane: row.seen.endpoint for row in rows if row.seen.is_due}
    last = rows[-1].lane if _was_cut(rows) else None
    return Found(due, *_states([row.seen for row in rows]), last)


def _states(rows: Sequence[_Seen]) -> tuple[frozenset[int], dict[int, Failing | None]]:
    """Endpoints that are deleted, and how each fails."""
    deleted = frozenset(row.endpoint.id for row in rows if row.is_deleted)
    return deleted, {row.endpoint.id: row.failing() for row in rows}


def _pauses() -> dict[str, float]:
    return {
        "probe_s": limits.CALLBACK_PROBE_S,
        "alone_s": limits.CALLBACK_SPARED_ALONE_S,
        "spared_s": limits.CALLBACK_SPARED_S,
        **retry_pauses(),
    }


def retry_pauses() -> dict[str, float]:
    """The bounds of what a delivery waits for its next try, as the statements take them."""
    return {
        "retry_s_base": limits.CALLBACK_RETRY_S_BASE,
        "retry_s_max": limits.CALLBACK_RETRY_S_MAX,
    }


def _was_cut(rows: Sequence[Any]) -> bool:
    return len(rows) >= limits.CALLBACK_SCAN_ENDPOINTS_MAX


async def claim_parallel(
    connection: Connection,
    wanted: Mapping[int, int],
    *,
    token: str = "",
    probes: Collection[int] = (),
) -> list[Claimed]:
    """At most so many deliveries of each endpoint as its id is mapped to; of those that back off
    only if they are among `probes`. The token is to be new.
    """
    token = token or str(uuid4())
    values = {
        "endpoints": int8_array([*wanted]),
        "counts": int8_array([*wanted.values()]),
        "probes": int8_array([*probes]),
        "token": token,
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    query = cursor_of(connection, Claimed)
    return await (await query.execute(SQL["claim_parallel"], values, binary=True)).fetchall()


async def claim_ordered(
    connection: Connection,
    lanes: Sequence[Lane],
    *,
    token: str = "",
    probes: Collection[int] = (),
) -> list[list[Claimed]]:
    """The oldest deliveries of those lanes that could be taken, each lane's in order; token and
    probes as above.

    Two statements: the second sees the deliveries as they are now that the lanes are held.
    """
    token = token or str(uuid4())
    terms = {"token": token, "claim_s": limits.CALLBACK_CLAIM_S}
    asked = {**_lanes(lanes), **terms, "probes": int8_array([*probes])}
    query = cursor_of(connection, Lane)
    held = await (await query.execute(SQL["take_lanes"], asked, binary=True)).fetchall()
    if not held:
        return []
    most = {"deliveries_max": limits.CALLBACK_LANE_DELIVERIES_MAX, **retry_pauses()}
    wanted = {**_lanes(held), **terms, **most}
    claims = cursor_of(connection, _Placed)
    rows = await (await claims.execute(SQL["claim_lanes"], wanted, binary=True)).fetchall()
    found: dict[Lane, list[Claimed]] = {lane: [] for lane in held}
    behind: list[Claimed] = []
    for claimed, place in sorted(rows, key=attrgetter("place")):
        taken_before = found[claimed.lane]
        (taken_before if place == len(taken_before) + 1 else behind).append(claimed)
    if behind:
        await give_back(connection, behind)
    empty = [lane for lane, claims in found.items() if not claims]
    if empty:
        await leave_lanes(connection, [(lane, token) for lane in empty])
    return [claims for claims in found.values() if claims]


async def leave_lanes(connection: Connection, held: Sequence[tuple[Lane, str]]) -> None:
    """Free lanes, if they are still held under those tokens."""
    values = {
        **_lanes([lane for lane, _ in held]),
        "tokens": text_array([token for _, token in held]),
    }
    await connection.execute(SQL["leave_lanes"], values)


async def give_back(connection: Connection, claims: Sequence[Claimed]) -> None:
    """Claimed and not tried: due again at once, for anyone."""
    values = {**where(claims), "tokens": text_array([claimed.token for claimed in claims])}
    await connection.execute(SQL["give_back"], values)


async def cancel(connection: Connection, endpoint_id: int) -> int:
    """Cancel pending deliveries of a deleted endpoint, a bounded number of them; how many."""
    bounds = {
        "endpoint": endpoint_id,
        "deliveries_max": limits.CALLBACK_CANCEL_DELIVERIES_MAX,
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    done = [
        (await connection.execute(SQL[name], bounds)).rowcount
        for name in ("cancel", "cancel_ordered")
    ]
    return sum(done)


async def forget_lanes(url: str) -> None:
    """Delete the rows of lanes that nobody has held for long. Raises what psycopg raises."""
    connection = await connect(url, name="eventhub lanes")
    async with connection:
        await connection.execute(SQL["forget_lanes"], {"kept_s": limits.CALLBACK_LANE_IDLE_S})


async def load_events(connection: Connection, claims: Iterable[Claimed]) -> list[ClaimedEvent]:
    """The events of deliveries, as far as they are held."""
    wanted = {(each.segment_id, each.sequence) for each in claims}
    values = {
        "segments": int8_array([segment for segment, _ in wanted]),
        "sequences": int8_array([sequence for _, sequence in wanted]),
    }
    query = cursor_of(connection, ClaimedEvent)
    return await (await query.execute(SQL["events"], values, binary=True)).fetchall()


async def kept_bytes(connection: Connection, claimed: Claimed) -> bytes | None:
    """The bytes that a delivery got of its event, if it has some by now."""
    values = {
        "endpoint": claimed.endpoint_id,
        "segment": claimed.segment_id,
        "sequence": claimed.sequence,
        "run": claimed.run,
    }
    query = scalars(connection)
    kept: bytes | None = await (
        await query.execute(SQL["kept_bytes"], values, binary=True)
    ).fetchone()
    return kept


async def why_lost(connection: Connection, segment: int) -> str:
    """Why the events of a segment are not held any more."""
    query = await scalars(connection).execute(SQL["why_lost"], {"segment": segment})
    return await query.fetchone() or "dropped"


async def load_places(connection: Connection, segments: Iterable[int]) -> dict[int, Place]:
    """Segments' UUIDs and their streams' names, by the segments' numbers."""
    query = cursor_of(connection, _Segment)
    rows = await query.execute(SQL["places"], {"segments": int8_array([*segments])})
    return {id: Place(segment, stream) async for id, segment, stream in rows}


async def load_reports(connection: Connection, versions: Iterable[int]) -> dict[int, Report]:
    """The reports of those versions of registrations that have one."""
    query = cursor_of(connection, _Reported)
    rows = await query.execute(SQL["reports"], {"versions": int8_array([*versions])})
    return {id: stored_report(report) async for id, report in rows}


def where(claims: Sequence[Claimed]) -> dict[str, Any]:
    """The keys of deliveries as the statements take them."""
    return {
        "groups": int8_array([each.partition_id for each in claims]),
        "endpoints": int8_array([each.endpoint_id for each in claims]),
        "segments": int8_array([each.segment_id for each in claims]),
        "sequences": int8_array([each.sequence for each in claims]),
        "runs": int8_array([each.run for each in claims]),
    }


def _lanes(lanes: Sequence[Lane]) -> dict[str, Any]:
    return {
        "endpoints": int8_array([lane.endpoint_id for lane in lanes]),
        "streams": int8_array([lane.stream_id for lane in lanes]),
        "runs": int8_array([lane.run for lane in lanes]),
    }
