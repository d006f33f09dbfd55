"""Claims of due deliveries, and the reads needed to post them. SQL module.

The statements and their guarantees are in delivery/sql/callbacks.sql. Every function takes an open
connection in autocommit mode and raises what psycopg raises when the database is unavailable. A
claim whose answer never arrives expires.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, LiteralString, NamedTuple
from uuid import uuid4

from delivery.callbacks.body import SegmentName
from eventhub.base import limits
from eventhub.postgresql import arrays, queries
from eventhub.postgresql.arrays import int8_array, text_array
from eventhub.postgresql.connections import Connection, connect
from eventhub.postgresql.prepared import fetch_prepared
from eventhub.postgresql.rows import fetch_all, fetch_value
from registrations.endpoints.statements import FILLED, Format, Handshake, Signature
from registrations.filters.report import ReportTemplate, stored_report
from registrations.sinks.registry import HTTPS

SQL = queries.load("delivery/sql/callbacks.sql", filled=FILLED)


class LaneKey(NamedTuple):
    """A lane: the ordered queue of an endpoint for one stream, or for one value of its key. Its
    number is the stream's id, or negative.
    """

    endpoint_id: int
    number: int


class CallbackEndpoint(NamedTuple):
    """The settings of an endpoint that posting needs. Its secrets are read when it has changed.
    `batch_events_max`: None unless events are posted in batches.
    """

    id: int
    url: str
    changed_at_us: int
    signature: Signature
    client_id: int
    zone: str
    format: Format
    handshake: Handshake = "none"
    batch_events_max: int | None = None
    batch_bytes_max: int | None = None
    retry_schedule: list[int] | None = None  # pauses in seconds; None: the default
    rate_limit: float | None = None  # requests per second
    concurrency: int | None = None  # requests at a time
    timeout_s: int | None = None  # None: the default
    allowed_rate: int | None = None  # requests per minute that the receiver agreed to
    kind: str = HTTPS
    settings: str | None = None  # of a sink, as JSON

    @property
    def is_limited(self) -> bool:
        """Whether all workers together keep a limit of its requests."""
        return (self.rate_limit, self.concurrency, self.allowed_rate) != (None, None, None)

    @property
    def has_rate_limit(self) -> bool:
        """Whether its requests per time are limited."""
        return (self.rate_limit, self.allowed_rate) != (None, None)

    @property
    def events_per_request(self) -> int:
        return self.batch_events_max or 1

    @property
    def refusals(self) -> tuple[int, ...]:
        """The statuses by which a receiver refuses one delivery for good, and none but that."""
        return (410, 413) if self.format == "mcp" else ()

    @property
    def body_format(self) -> Format:
        """The format of an event's body. In a batch a CloudEvent is always structured."""
        if self.batch_events_max is None or self.format in ("native", "mcp"):
            return self.format
        return "cloudevents_structured"


class FailureState(NamedTuple):
    """The recent failures of an endpoint. `is_open`: its circuit is not closed, so at most one
    request (a probe) may be made, after the pause.
    """

    failures: int  # in a row
    is_open: bool


class ScanResult(NamedTuple):
    """The result of scanning one page; `last`: the next page starts after it, None at the end.
    `linger_s`: until the next batch that waits for more events is due; None: there is none.
    """

    due: dict[int, CallbackEndpoint]  # by endpoint id
    deleted: frozenset[int]  # endpoints whose deliveries are to be cancelled
    failing: Mapping[int, FailureState | None]  # of all endpoints scanned
    last: int | None
    linger_s: float | None = None


class Claimed(NamedTuple):
    """A delivery claimed by this worker, and its attempts so far. `probe`: it is the one request to
    an endpoint whose circuit is open.
    """

    partition_id: int
    endpoint_id: int
    segment_id: int
    sequence: int
    stream_id: int
    lane_number: int
    registrations: list[int]
    attempts: int
    uncounted_attempts: int
    has_copy: bool  # of its event, which left the database or is replayed
    created_at_us: int
    gap_first: int | None  # set: a gap notice for the events from here to `sequence`
    gap_reason: str | None
    version_ids: list[int] | None  # whose reports and variables count; None: none
    message_number: int | None  # 2, 3, ... in the webhook-id; None: the first id
    forced: bool  # posted even if the event has expired
    token: str
    probe: bool
    is_repeat: bool = False  # it was requested again, or a replay wrote it
    early_s: float = 0.0  # a probe before it was due, which does not count: the rest of its pause

    @property
    def lane(self) -> LaneKey:
        return LaneKey(self.endpoint_id, self.lane_number)

    @property
    def sequences(self) -> tuple[int]:
        """The sequences of the claim, as a group has them."""
        return (self.sequence,)


class LaneCounts(NamedTuple):
    """How many lanes of an endpoint may be taken, and how many deliveries claimed, of all of them
    and of each: at least one of each.
    """

    lanes: int
    deliveries: int
    deliveries_of_each: int

    def of_each(self, taken: int) -> int:
        """Return how many deliveries to claim of each lane, if so many lanes were taken."""
        return max(1, min(self.deliveries // taken, self.deliveries_of_each))


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
    is_open: bool
    linger_s: float | None

    def failing(self) -> FailureState | None:
        return None if self.failures is None else FailureState(self.failures, self.is_open)


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
    return await _scan(connection, SQL["scan_parallel"], after)


async def scan_lanes(connection: Connection, after: int) -> ScanResult:
    """Return the endpoints with free lanes that are due, starting after the endpoint `after`."""
    return await _scan(connection, SQL["scan_lanes"], after)


async def _scan(connection: Connection, statement: LiteralString, after: int) -> ScanResult:
    bounds = {
        "after": after,
        "endpoints_max": limits.CALLBACK_SCAN_ENDPOINTS_MAX,
        "probe_s": limits.CALLBACK_PROBE_S,
    }
    rows = await fetch_prepared(connection, _ScannedEndpoint, statement, bounds)
    due = {row.endpoint.id: row.endpoint for row in rows if row.is_due}
    deleted = frozenset(row.endpoint.id for row in rows if row.is_deleted)
    failing = {row.endpoint.id: row.failing() for row in rows}
    last = rows[-1].endpoint.id if len(rows) >= limits.CALLBACK_SCAN_ENDPOINTS_MAX else None
    lingering = [row.linger_s for row in rows if row.linger_s is not None and row.linger_s > 0]
    return ScanResult(due, deleted, failing, last, min(lingering, default=None))


async def claim_lanes(
    connection: Connection,
    requested: Mapping[int, LaneCounts],
    *,
    token: str = "",
    probes: Collection[int] = (),
) -> list[list[Claimed]]:
    """Take lanes that are due, for each endpoint at most the requested number, and claim their
    oldest deliveries, each lane's in order. `token` and `probes` are as in `claim_groups`.

    Two statements are needed: the second reads the deliveries as they are once the lanes are held.
    """
    token = token or str(uuid4())
    terms = {"token": token, "claim_s": limits.CALLBACK_CLAIM_S}
    values = {
        "endpoints": int8_array([*requested]),
        "counts": int8_array([each.lanes for each in requested.values()]),
        "probes": int8_array([*probes]),
        **terms,
    }
    taken = await fetch_prepared(connection, LaneKey, SQL["take_lanes"], values)
    if not taken:
        return []
    of_endpoint = Counter(lane.endpoint_id for lane in taken)
    counts = [requested[lane.endpoint_id].of_each(of_endpoint[lane.endpoint_id]) for lane in taken]
    bounds = {"counts": int8_array(counts)}
    values = {**_lane_arrays(taken), **terms, **bounds}
    rows = await fetch_prepared(connection, _RankedClaim, SQL["claim_lanes"], values)
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


async def leave_lanes(connection: Connection, taken: Sequence[tuple[LaneKey, str]]) -> int:
    """Leave lanes that are still held under the given tokens, after their results are written;
    return how many of them are due again.
    """
    values = {
        **_lane_arrays([lane for lane, _ in taken]),
        "tokens": text_array([token for _, token in taken]),
        "fanout_s": limits.CALLBACK_SCAN_NEXT_S,
    }
    due: int | None = await fetch_value(connection, SQL["leave_lanes"], values)
    return due or 0


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
    if not ordered.rowcount:
        await connection.execute(SQL["cancel_lanes"], {"endpoint": endpoint_id})
    return parallel.rowcount + ordered.rowcount


async def delete_leftovers(url: str) -> None:
    """Delete lanes without deliveries that have been free for long, the throttles of endpoints
    without limits, and the circuits and verifications of deleted endpoints. Raise what psycopg
    raises.
    """
    connection = await connect(url, name="eventhub leftovers")
    async with connection:
        await connection.execute(SQL["delete_idle_lanes"], {"idle_s": limits.CALLBACK_LANE_IDLE_S})
        await connection.execute(SQL["delete_unused_throttles"])
        await connection.execute(SQL["delete_circuits_of_deleted_endpoints"])
        await connection.execute(SQL["delete_verifications_of_deleted_endpoints"])


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
        "lanes": int8_array([lane.number for lane in lanes]),
    }
