"""Claims of due deliveries, and the reads needed to post them. SQL module.

The statements and their guarantees are in delivery/sql/callbacks.sql. Every function takes an open
connection in autocommit mode and raises what psycopg raises when the database is unavailable. A
claim whose answer never arrives expires.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import uuid4

from delivery.callbacks.body import SegmentName
from eventhub.base import limits
from eventhub.postgresql import arrays, queries
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection, connect
from eventhub.postgresql.rows import fetch_all, fetch_value
from registrations.endpoints.statements import Format, Handshake, Signature
from registrations.filters.report import ReportTemplate, stored_report

SQL = queries.load("delivery/sql/callbacks.sql")


class LaneKey(NamedTuple):
    """A lane: the ordered queue of one endpoint and one stream."""

    endpoint_id: int
    stream_id: int


class CallbackEndpoint(NamedTuple):
    """The settings of an endpoint that posting needs. Its secrets are read when it has changed."""

    id: int
    url: str
    changed_at_us: int
    signature: Signature
    client_id: int
    zone: str
    format: Format
    handshake: Handshake = "none"


class FailureState(NamedTuple):
    """The recent failures of an endpoint. `backs_off`: at most one request (a probe) may be made,
    after the pause. `spares`: failed attempts do not count meanwhile.
    """

    failures: int  # in a row
    backs_off: bool
    spares: bool


class ScanResult(NamedTuple):
    """The result of scanning one page; `last`: the next page starts after it, None at the end."""

    due: dict[Any, CallbackEndpoint]  # by endpoint id, or by lane
    deleted: frozenset[int]  # endpoints whose deliveries are to be cancelled
    failing: Mapping[int, FailureState | None]  # of all endpoints scanned
    last: Any


class Claimed(NamedTuple):
    """A delivery claimed by this worker, and its attempts so far. `probe`: it is the one request to
    an endpoint in backoff; `spares`: a failed attempt does not count.
    """

    partition_id: int
    endpoint_id: int
    segment_id: int
    sequence: int
    stream_id: int
    registrations: list[int]
    attempts: int
    uncounted_attempts: int
    payload: bytes | None  # the event's stored bytes, once the event left the database
    created_at_us: int
    gap_first: int | None  # set: a gap notice for the events from here to `sequence`
    gap_reason: str | None
    version_ids: list[int] | None  # whose reports and variables count; None: none
    message_number: int | None  # 2, 3, ... in the webhook-id; None: the first id
    forced: bool  # posted even if the event has expired
    token: str
    probe: bool
    spares: bool

    @property
    def lane(self) -> LaneKey:
        return LaneKey(self.endpoint_id, self.stream_id)


class _RankedClaim(NamedTuple):
    """A claimed delivery and its position in its lane, from 1 on."""

    claimed: Claimed
    place: int


class _ScannedEndpoint(NamedTuple):
    """An endpoint with pending deliveries; only its id is set if the endpoint no longer exists."""

    endpoint: CallbackEndpoint
    is_due: bool
    is_deleted: bool
    failures: int | None
    backs_off: bool
    spares: bool

    def failing(self) -> FailureState | None:
        if self.failures is None:
            return None
        return FailureState(self.failures, self.backs_off, self.backs_off and self.spares)


class _ScannedLane(NamedTuple):
    """A lane with pending deliveries."""

    scanned: _ScannedEndpoint
    stream_id: int

    @property
    def lane(self) -> LaneKey:
        return LaneKey(self.scanned.endpoint.id, self.stream_id)


class ClaimedEvent(NamedTuple):
    """The stored bytes of an event."""

    segment_id: int
    sequence: int
    appended_at_us: int
    payload: bytes


class Annotation(NamedTuple):
    """The report and the variable of a version of a registration; at least one is given."""

    registration: int
    report: ReportTemplate | None
    variable: str | None


class _SegmentNameRow(NamedTuple):
    id: int
    segment: str
    stream: str


class _AnnotationRow(NamedTuple):
    id: int
    registration: int
    report: str | None
    variable: str | None


async def open_connection(url: str, name: str) -> Connection:
    """Return a connection that plans over the indexes only. Raises DatabaseUnavailable."""
    connection = await connect(url, name=f"eventhub {name}")
    arrays.adapt(connection)
    await connection.execute(SQL["settings"])
    return connection


async def scan_parallel(connection: Connection, after: int) -> ScanResult:
    """Return the endpoints with due deliveries, starting after the endpoint `after`."""
    bounds = {"after": after, "endpoints_max": limits.CALLBACK_SCAN_ENDPOINTS_MAX, **_pauses()}
    statement = SQL["scan_parallel"]
    rows = await fetch_all(connection, _ScannedEndpoint, statement, bounds, binary=True)
    due = {row.endpoint.id: row.endpoint for row in rows if row.is_due}
    last = rows[-1].endpoint.id if _is_page_full(rows) else None
    return ScanResult(due, *_failure_states(rows), last)


async def scan_ordered(connection: Connection, after: LaneKey) -> ScanResult:
    """Return the free lanes with a due delivery, starting after the lane `after`."""
    bounds = {
        "endpoint": after.endpoint_id,
        "stream": after.stream_id,
        "lanes_max": limits.CALLBACK_SCAN_ENDPOINTS_MAX,
        **_pauses(),
    }
    rows = await fetch_all(connection, _ScannedLane, SQL["scan_ordered"], bounds, binary=True)
    due = {row.lane: row.scanned.endpoint for row in rows if row.scanned.is_due}
    last = rows[-1].lane if _is_page_full(rows) else None
    return ScanResult(due, *_failure_states([row.scanned for row in rows]), last)


def _failure_states(
    rows: Sequence[_ScannedEndpoint],
) -> tuple[frozenset[int], dict[int, FailureState | None]]:
    """Return the deleted endpoints, and the failure state of each endpoint."""
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
    """Return the bounds of the pause before a retry, as parameters of the statements."""
    return {
        "retry_s_base": limits.CALLBACK_RETRY_S_BASE,
        "retry_s_max": limits.CALLBACK_RETRY_S_MAX,
    }


def _is_page_full(rows: Sequence[Any]) -> bool:
    return len(rows) >= limits.CALLBACK_SCAN_ENDPOINTS_MAX


async def claim_parallel(
    connection: Connection,
    requested: Mapping[int, int],
    *,
    token: str = "",
    probes: Collection[int] = (),
) -> list[Claimed]:
    """Claim due deliveries, for each endpoint at most the requested number; for endpoints in
    backoff only if they are among `probes`. The token must not have been used before.
    """
    token = token or str(uuid4())
    values = {
        "endpoints": int8_array([*requested]),
        "counts": int8_array([*requested.values()]),
        "probes": int8_array([*probes]),
        "token": token,
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    return await fetch_all(connection, Claimed, SQL["claim_parallel"], values, binary=True)


async def claim_ordered(
    connection: Connection,
    lanes: Sequence[LaneKey],
    *,
    token: str = "",
    probes: Collection[int] = (),
) -> list[list[Claimed]]:
    """Take the lanes that are free and claim their oldest deliveries, each lane's in order. `token`
    and `probes` are as in `claim_parallel`.

    Two statements are needed: the second reads the deliveries as they are once the lanes are held.
    """
    token = token or str(uuid4())
    terms = {"token": token, "claim_s": limits.CALLBACK_CLAIM_S}
    values = {**_lane_arrays(lanes), **terms, "probes": int8_array([*probes])}
    taken = await fetch_all(connection, LaneKey, SQL["take_lanes"], values, binary=True)
    if not taken:
        return []
    bounds = {"deliveries_max": limits.CALLBACK_LANE_DELIVERIES_MAX, **retry_pauses()}
    requested = {**_lane_arrays(taken), **terms, **bounds}
    rows = await fetch_all(connection, _RankedClaim, SQL["claim_lanes"], requested, binary=True)
    found: dict[LaneKey, list[Claimed]] = {lane: [] for lane in taken}
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


async def leave_lanes(connection: Connection, taken: Sequence[tuple[LaneKey, str]]) -> None:
    """Free lanes that are still held under the given tokens."""
    values = {
        **_lane_arrays([lane for lane, _ in taken]),
        "tokens": text_array([token for _, token in taken]),
    }
    await connection.execute(SQL["leave_lanes"], values)


async def give_back(connection: Connection, claims: Sequence[Claimed]) -> None:
    """Release claims that were not attempted: they are due again at once, for any worker."""
    values = {**delivery_keys(claims), "tokens": text_array([claimed.token for claimed in claims])}
    await connection.execute(SQL["give_back"], values)


async def cancel(connection: Connection, endpoint_id: int) -> int:
    """Cancel a bounded number of pending deliveries of a deleted endpoint; return how many."""
    bounds = {
        "endpoint": endpoint_id,
        "deliveries_max": limits.CALLBACK_CANCEL_DELIVERIES_MAX,
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    parallel = await connection.execute(SQL["cancel"], bounds)
    ordered = await connection.execute(SQL["cancel_ordered"], bounds)
    return parallel.rowcount + ordered.rowcount


async def forget_lanes(url: str) -> None:
    """Delete the rows of lanes that have been free for long. Raise what psycopg raises."""
    connection = await connect(url, name="eventhub lanes")
    async with connection:
        await connection.execute(SQL["forget_lanes"], {"idle_s": limits.CALLBACK_LANE_IDLE_S})


async def load_events(connection: Connection, claims: Iterable[Claimed]) -> list[ClaimedEvent]:
    """Return the events of deliveries that are in the database."""
    requested = {(each.segment_id, each.sequence) for each in claims}
    values = {
        "segments": int8_array([segment for segment, _ in requested]),
        "sequences": int8_array([sequence for _, sequence in requested]),
    }
    return await fetch_all(connection, ClaimedEvent, SQL["events"], values, binary=True)


async def retained_bytes(connection: Connection, claimed: Claimed) -> bytes | None:
    """Return the copy of the event that a delivery may have received after it was claimed."""
    values = {
        "endpoint": claimed.endpoint_id,
        "segment": claimed.segment_id,
        "sequence": claimed.sequence,
    }
    retained: bytes | None = await fetch_value(connection, SQL["retained_bytes"], values)
    return retained


async def removal_reason(connection: Connection, segment: int) -> str:
    """Return why the events of a segment were removed."""
    values = {"segment": segment}
    return await fetch_value(connection, SQL["removal_reason"], values) or "dropped"


async def load_segments(connection: Connection, segments: Iterable[int]) -> dict[int, SegmentName]:
    """Return the UUIDs of segments and the names of their streams, by the segments' ids."""
    values = {"segments": int8_array([*segments])}
    rows = await fetch_all(connection, _SegmentNameRow, SQL["segments"], values)
    return {id: SegmentName(segment, stream) for id, segment, stream in rows}


async def load_annotations(
    connection: Connection, versions: Iterable[int]
) -> dict[int, Annotation]:
    """Return the reports and variables of those versions of registrations that have one."""
    values = {"versions": int8_array([*versions])}
    return {
        row.id: Annotation(
            row.registration, stored_report(row.report) if row.report else None, row.variable
        )
        for row in await fetch_all(connection, _AnnotationRow, SQL["annotations"], values)
    }


def delivery_keys(claims: Sequence[Claimed]) -> dict[str, Any]:
    """Return the keys of deliveries as parameters of the statements."""
    return {
        "partitions": int8_array([each.partition_id for each in claims]),
        "endpoints": int8_array([each.endpoint_id for each in claims]),
        "segments": int8_array([each.segment_id for each in claims]),
        "sequences": int8_array([each.sequence for each in claims]),
    }


def _lane_arrays(lanes: Sequence[LaneKey]) -> dict[str, Any]:
    return {
        "endpoints": int8_array([lane.endpoint_id for lane in lanes]),
        "streams": int8_array([lane.stream_id for lane in lanes]),
    }
