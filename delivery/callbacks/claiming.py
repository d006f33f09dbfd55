"""Claims of due deliveries, up to the free slots of this worker, which are then posted. SQL
module.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from delivery.callbacks import claims
from delivery.callbacks.backoffs import return_probes, take_probes
from delivery.callbacks.claims import CallbackEndpoint, Claimed, LaneKey, ScanResult
from delivery.callbacks.load import Loader
from delivery.callbacks.posting import DispatcherContext, Posting, PreparedDelivery
from delivery.callbacks.rotation import Rotation
from eventhub.base import limits, metrics
from eventhub.postgresql.connections import Connection

_START = LaneKey(0, 0)


class _Scan(NamedTuple):
    """A scan's due deliveries, by endpoint id or by lane, and the slots granted to each
    endpoint.
    """

    found: ScanResult
    due: dict[Any, CallbackEndpoint]
    granted: dict[int, int]


class Claiming:
    """The claims of one dispatcher. `posting` posts what was claimed."""

    def __init__(self, context: DispatcherContext, loader: Loader, posting: Posting) -> None:
        self._clock = context.clock
        self._slots = context.slots
        self._failures = context.failures
        self._heartbeat = context.heartbeat
        self._loader = loader
        self._posting = posting
        self._parallel = Rotation(context.random)
        self._ordered = Rotation(context.random)
        self._endpoints_after = 0
        self._lanes_after = _START
        self.pending_s = context.clock.monotonic_s()  # when a scan last found something pending
        self.count = 0  # deliveries claimed

    @property
    def is_partial(self) -> bool:
        """Whether the last scan stopped before the end."""
        return self._endpoints_after > 0 or self._lanes_after > _START

    async def has_due(self, connection: Connection) -> bool:
        """Scan without claiming; return True if something is due that this worker has slots for."""
        parallel, ordered = (
            await self._parallel_due(connection),
            await self._ordered_due(connection),
        )
        for scan in (parallel, ordered):
            if scan.found.deleted or self._failures.limit_to_callable(scan.granted):
                return True
        self._endpoints_after = parallel.found.last or 0
        self._lanes_after = ordered.found.last or _START
        return False

    async def claim(self, connection: Connection) -> bool:
        """Claim once and start posting; return True if more may be due."""
        parallel = await self._claim_parallel(connection)
        ordered = await self._claim_ordered(connection)
        return parallel or ordered

    async def _parallel_due(self, connection: Connection) -> _Scan:
        found = await claims.scan_parallel(connection, self._endpoints_after)
        due = self._parallel.due(self._endpoints_after, found)
        self._record_scan(found)
        return _Scan(found, due, self._slots.grant(self._parallel.order(due.values())))

    async def _ordered_due(self, connection: Connection) -> _Scan:
        found = await claims.scan_ordered(connection, self._lanes_after)
        due = self._ordered.due(self._lanes_after, found)
        self._record_scan(found)
        endpoints = {endpoint.id: endpoint for endpoint in due.values()}
        return _Scan(found, due, self._slots.grant(self._ordered.order(endpoints.values())))

    def _record_scan(self, found: ScanResult) -> None:
        if found.failing:
            self.pending_s = self._clock.monotonic_s()
        self._failures.record_scan(found.failing)

    async def _claim_parallel(self, connection: Connection) -> bool:
        found, due, granted = await self._parallel_due(connection)
        self._endpoints_after = found.last or 0
        await _cancel(connection, found)
        self._parallel.grant(due, granted)
        requested = self._failures.limit_to_callable(granted)
        probes = await self._probes(connection, requested)
        expired = probes & self._posting.expired_probes
        requested.update(dict.fromkeys(expired, limits.CALLBACK_LANE_DELIVERIES_MAX))
        if not requested:
            return bool(due) or found.last is not None
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        token = self._heartbeat.token()
        claimed = await claims.claim_parallel(connection, requested, token=token, probes=probes)
        claimed = await self._mark_probes(connection, claimed, probes)
        self._post(await self._prepare(connection, claimed, due, until_s), probes)
        return (
            len(claimed) >= sum(requested.values())
            or requested.keys() != due.keys()
            or found.last is not None
        )

    def _post(self, prepared: Sequence[PreparedDelivery], probes: frozenset[int]) -> None:
        probing: dict[int, list[PreparedDelivery]] = {}
        for delivery in prepared:
            endpoint_id = delivery.claimed.endpoint_id
            if endpoint_id in probes:
                probing.setdefault(endpoint_id, []).append(delivery)
            else:
                self._posting.deliver(delivery)
        for found in probing.values():
            self._posting.probe(found)
        self._confirm(len(prepared))

    async def _claim_ordered(self, connection: Connection) -> bool:
        found, due, granted = await self._ordered_due(connection)
        self._lanes_after = found.last or _START
        await _cancel(connection, found)
        self._ordered.grant(due, granted)
        allowed = self._failures.limit_to_callable(granted)
        probes = await self._probes(connection, allowed)
        lanes = []
        for lane in due:
            if allowed.get(lane.endpoint_id, 0) > 0:
                allowed[lane.endpoint_id] -= 1
                lanes.append(lane)
        if not lanes:
            return bool(due) or found.last is not None
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        token = self._heartbeat.token()
        taken = await claims.claim_ordered(connection, lanes, token=token, probes=probes)
        firsts = await self._mark_probes(connection, [lane[0] for lane in taken], probes)
        flat = [each for first, lane in zip(firsts, taken, strict=True)
                for each in (first, *lane[1:])]  # fmt: skip
        endpoints = {endpoint.id: endpoint for endpoint in due.values()}
        prepared = iter(await self._prepare(connection, flat, endpoints, until_s))
        for lane_claims in taken:
            self._posting.deliver_lane(list(islice(prepared, len(lane_claims))))
        self._confirm(len(flat))
        return len(lanes) < len(due) or found.last is not None

    def _confirm(self, count: int) -> None:
        self._heartbeat.confirm_claim()
        self.count += count

    async def _probes(self, connection: Connection, requested: dict[int, int]) -> frozenset[int]:
        """Return the endpoints in backoff that this worker may probe. Remove from `requested` those
        that other workers probe.
        """
        backing_off = [each for each in requested if self._failures.backs_off(each)]
        if not backing_off:
            return frozenset()
        probes = await take_probes(connection, backing_off)
        for each in backing_off:
            if each not in probes:
                del requested[each]
        return probes

    async def _mark_probes(
        self, connection: Connection, claimed: list[Claimed], probes: frozenset[int]
    ) -> list[Claimed]:
        """Return the claims with probes marked; release the probes without a claim."""
        if not probes:
            return claimed
        unused = probes - {each.endpoint_id for each in claimed}
        if unused:
            await return_probes(connection, unused)
        return [
            each._replace(probe=True, spares=self._failures.spares(each.endpoint_id))
            if each.endpoint_id in probes
            else each
            for each in claimed
        ]

    async def _prepare(
        self,
        connection: Connection,
        claimed: Sequence[Claimed],
        endpoints: dict[int, CallbackEndpoint],
        until_s: float,
    ) -> list[PreparedDelivery]:
        """Return the claimed deliveries ready to be posted. If this raises, the claims are lost."""
        contents = await self._loader.load(connection, claimed, endpoints)
        called = {claim.endpoint_id for claim in claimed}
        targets = await self._loader.targets(connection, [endpoints[each] for each in called])
        return [
            PreparedDelivery(each, targets[each.endpoint_id], content, until_s)
            for each, content in zip(claimed, contents, strict=True)
        ]


async def _cancel(connection: Connection, found: ScanResult) -> None:
    for endpoint_id in found.deleted:
        count = await claims.cancel(connection, endpoint_id)
        metrics.CALLBACK_CANCELLED.inc(count)
