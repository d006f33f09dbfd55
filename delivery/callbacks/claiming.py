"""Claims of due deliveries, up to the free slots of this worker, which are then posted. A slot is
for one request at a time: for one delivery, for a batch, or for a lane, whose deliveries are posted
one after the other. SQL module.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from delivery.callbacks import claims
from delivery.callbacks.circuits import DeliveryKey, advance, hasten, return_probes, take_probes
from delivery.callbacks.claim_shares import (
    ByteBound,
    ahead,
    deliveries_requested,
    lanes_requested,
    requests_of,
    within_bytes,
)
from delivery.callbacks.claimed_groups import ClaimedGroup, claim_groups
from delivery.callbacks.claims import CallbackEndpoint, Claimed, LaneCounts, ScanResult
from delivery.callbacks.load import Loader
from delivery.callbacks.posting import DispatcherContext, Posting
from delivery.callbacks.prepared import GroupedDelivery, PreparedDelivery, prepared_group
from delivery.callbacks.rotation import Rotation
from delivery.callbacks.throttles import within_throttles
from eventhub.base import limits, metrics
from eventhub.postgresql.connections import Connection


class _Scan(NamedTuple):
    """A scan's endpoints with due deliveries, by id, and the slots granted to each."""

    found: ScanResult
    due: dict[int, CallbackEndpoint]
    granted: dict[int, int]


class Probes(NamedTuple):
    """The endpoints that this worker may call with one request, and for how many seconds each of
    the deliveries would have waited that are attempted before they are due.
    """

    endpoints: frozenset[int]
    early: Mapping[DeliveryKey, float]


class _Claim(NamedTuple):
    """The endpoints that deliveries are claimed for, the slots of each, the probes, and when the
    claims expire, on the loop's clock.
    """

    due: Mapping[int, CallbackEndpoint]
    slots: Mapping[int, int]
    probes: Probes
    until_s: float


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
        self._lanes_after = 0  # an endpoint, too
        self._linger_until_s = [math.inf, math.inf]  # of parallel and ordered batches
        self.pending_s = context.clock.monotonic_s()  # when a scan last found something pending
        self.count = 0  # deliveries claimed
        self.is_throttled = False  # the last claim met the limits of an endpoint
        self.is_bounded = False  # the last claim met the bound of deliveries of batches

    @property
    def is_partial(self) -> bool:
        """Whether the last scan stopped before the end."""
        return self._endpoints_after > 0 or self._lanes_after > 0

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
        self._lanes_after = ordered.found.last or 0
        self.is_throttled = False
        return False

    async def claim(self, connection: Connection) -> bool:
        """Claim once and start posting; return True if more may be due."""
        self.is_throttled = self.is_bounded = False
        parallel = await self._claim_parallel(connection)
        await asyncio.sleep(0)  # requests are sent before the next statement is
        ordered = await self._claim_ordered(connection)
        return parallel or ordered

    @property
    def linger_s(self) -> float:
        """The time until a batch that waits for more events is due; infinite if there is none."""
        return max(0.0, min(self._linger_until_s) - self._clock.monotonic_s())

    async def _parallel_due(self, connection: Connection) -> _Scan:
        found = await claims.scan_parallel(connection, self._endpoints_after)
        return self._granted(found, self._parallel, self._endpoints_after)

    async def _ordered_due(self, connection: Connection) -> _Scan:
        found = await claims.scan_lanes(connection, self._lanes_after)
        return self._granted(found, self._ordered, self._lanes_after)

    def _granted(self, found: ScanResult, rotation: Rotation, after: int) -> _Scan:
        """Record a scan and grant slots to what it found."""
        due = rotation.due(after, found)
        if found.failing:
            self.pending_s = self._clock.monotonic_s()
        self._failures.record_scan(found.failing)
        linger_s = math.inf if found.linger_s is None else found.linger_s
        self._linger_until_s[rotation is self._ordered] = self._clock.monotonic_s() + linger_s
        return _Scan(found, due, self._slots.grant(rotation.order(due.values())))

    async def _claim_parallel(self, connection: Connection) -> bool:
        found, due, granted = await self._parallel_due(connection)
        self._endpoints_after = found.last or 0
        await _cancel(connection, found)
        self._parallel.grant(due, granted)
        allowed = self._failures.limit_to_callable(granted)
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        async with within_throttles(connection, due, allowed) as throttle:
            probes = await self._probes(connection, allowed, ordered=False)
            requested = deliveries_requested(allowed, due, probes.endpoints)
            requested |= ahead(allowed, due, probes.endpoints, self._slots.per_slot)
            requested = within_bytes(requested, allowed, self._byte_bound(allowed))
            expired = probes.endpoints & self._posting.expired_probes
            requested.update(dict.fromkeys(expired, limits.CALLBACK_LANE_DELIVERIES_MAX))
            groups = await self._claim_requested(connection, requested, probes.endpoints)
            counts = _count(groups)
            throttle.use(requests_of(counts, due))
        self.is_throttled |= throttle.is_limiting
        self.is_bounded |= any(
            counts[each] == count < allowed[each] * due[each].events_per_request
            for each, count in requested.items()
            if each not in probes.endpoints
        )
        if not requested:
            return bool(due) or found.last is not None
        await self._post(connection, groups, _Claim(due, allowed, probes, until_s))
        return (
            any(counts[each] >= count for each, count in requested.items())
            or requested.keys() != due.keys()
            or found.last is not None
        )

    async def _claim_requested(
        self, connection: Connection, requested: dict[int, int], probes: frozenset[int]
    ) -> list[ClaimedGroup]:
        if not requested:
            return []
        token = self._heartbeat.token()
        groups = await claim_groups(connection, requested, token=token, probes=probes)
        await self._return_unused(connection, probes - {each.endpoint_id for each in groups})
        return groups

    async def _post(
        self, connection: Connection, groups: Sequence[ClaimedGroup], claim: _Claim
    ) -> None:
        """Post claimed deliveries: batches of an endpoint by group, the others one by one."""
        due, slots, probes, until_s = claim
        batched = [each for each in groups if _is_batched(each, due, probes.endpoints)]
        singly = [each for each in groups if not _is_batched(each, due, probes.endpoints)]
        claimed = _marked([each for group in singly for each in group.deliveries()], probes)
        prepared = await self._prepare(connection, claimed, due, until_s)
        members = await self._prepare_groups(connection, batched, due, until_s)
        by_endpoint: dict[int, list[PreparedDelivery]] = {}
        for delivery in prepared:
            by_endpoint.setdefault(delivery.claimed.endpoint_id, []).append(delivery)
        for endpoint_id, found in by_endpoint.items():
            if found[0].claimed.probe:
                self._posting.probe(found)
            else:
                used = min(slots[endpoint_id], len(found))
                for number in range(used):
                    self._posting.deliver(found[number::used])
        for deliveries in members.values():
            self._post_members(deliveries)
        self._confirm(_count(groups).total())

    def _post_members(self, deliveries: list[GroupedDelivery]) -> None:
        """Post an endpoint's deliveries, one batch of them in each request at a time."""
        size = deliveries[0].target.batch
        if size is not None:
            if deliveries[0].common is not deliveries[-1].common:
                deliveries.sort(key=_position)
            for first in range(0, len(deliveries), size.events_max):
                part = deliveries[first : first + size.events_max]
                self._posting.deliver_batches(part, size, ordered=False)

    def _post_lanes(self, lanes: list[list[PreparedDelivery]]) -> None:
        """Post lanes in batches, about one batch of an endpoint in each request at a time."""
        parts: dict[int, list[PreparedDelivery]] = {}
        for lane in lanes:
            size, endpoint_id = lane[0].target.batch, lane[0].claimed.endpoint_id
            part = parts.setdefault(endpoint_id, [])
            part += lane
            if size is not None and len(part) >= size.events_max:
                self._posting.deliver_batches(parts.pop(endpoint_id), size, ordered=True)
        for part in parts.values():
            if part[0].target.batch is not None:
                self._posting.deliver_batches(part, part[0].target.batch, ordered=True)

    async def _claim_ordered(self, connection: Connection) -> bool:
        found, due, granted = await self._ordered_due(connection)
        self._lanes_after = found.last or 0
        await _cancel(connection, found)
        self._ordered.grant(due, granted)
        allowed = self._failures.limit_to_callable(granted)
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        per_lane = limits.CALLBACK_LANE_DELIVERIES_MAX
        async with within_throttles(connection, due, allowed, per_slot=per_lane) as throttle:
            probes = await self._probes(connection, allowed, ordered=True)
            bound = self._byte_bound(allowed)
            requested = lanes_requested(allowed, due, probes.endpoints, throttle, bound)
            taken = await self._take_lanes(connection, requested, probes.endpoints)
            claimed = Counter(each.endpoint_id for lane in taken for each in lane)
            throttle.use(requests_of(claimed, due))
        self.is_throttled |= throttle.is_limiting
        if not allowed:
            return bool(due) or found.last is not None
        unused = probes.endpoints - {lane[0].endpoint_id for lane in taken}
        await self._return_unused(connection, unused)
        firsts = _marked([lane[0] for lane in taken], probes)
        flat = [each for first, lane in zip(firsts, taken, strict=True)
                for each in (first, *lane[1:])]  # fmt: skip
        prepared = iter(await self._prepare(connection, flat, due, until_s))
        batches: list[list[PreparedDelivery]] = []
        for lane_claims in taken:
            lane = list(islice(prepared, len(lane_claims)))
            if lane[0].target.batch is not None and not lane[0].claimed.probe:
                batches.append(lane)
            else:
                self._posting.deliver_lane(lane)
        self._post_lanes(batches)
        self._confirm(len(flat))
        lanes = Counter(lane[0].endpoint_id for lane in taken)
        return (
            any(lanes[each] >= count.lanes for each, count in requested.items())
            or requested.keys() != due.keys()
            or found.last is not None
        )

    async def _take_lanes(
        self,
        connection: Connection,
        requested: Mapping[int, LaneCounts],
        probes: frozenset[int],
    ) -> list[list[Claimed]]:
        if not requested:
            return []
        token = self._heartbeat.token()
        return await claims.claim_lanes(connection, requested, token=token, probes=probes)

    def _byte_bound(self, endpoint_ids: Iterable[int]) -> ByteBound:
        return ByteBound(self._slots.bytes_per_claim, self._slots.large_events(endpoint_ids))

    def _confirm(self, count: int) -> None:
        self._heartbeat.confirm_claim()
        self.count += count

    async def _probes(
        self, connection: Connection, requested: dict[int, int], *, ordered: bool
    ) -> Probes:
        """Return the endpoints with an open circuit that this worker may probe. Where nothing is
        due, make the next delivery due. Remove from `requested` those that other workers probe.
        What failed before an endpoint was changed is due again.
        """
        opened = [each for each in requested if self._failures.is_open(each)]
        if not opened:
            return Probes(frozenset(), {})
        probes = await take_probes(connection, opened)
        for each in opened:
            if each not in probes:
                del requested[each]
        await hasten(connection, [each for each, changed in probes.items() if changed])
        return Probes(frozenset(probes), await advance(connection, probes, ordered=ordered))

    async def _return_unused(self, connection: Connection, probes: frozenset[int]) -> None:
        """Release the probes of endpoints of which nothing could be claimed."""
        if probes:
            await return_probes(connection, probes, pause_s=limits.CALLBACK_CIRCUIT_S_BASE)

    async def _prepare(
        self,
        connection: Connection,
        claimed: Sequence[Claimed],
        endpoints: Mapping[int, CallbackEndpoint],
        until_s: float,
    ) -> list[PreparedDelivery]:
        """Return the claimed deliveries ready to be posted. If this raises, the claims are lost."""
        bytes_max = self._slots.bytes_per_claim
        contents = await self._loader.load(connection, claimed, endpoints, bytes_max)
        called = {claim.endpoint_id for claim in claimed}
        targets = await self._loader.targets(connection, [endpoints[each] for each in called])
        return [
            PreparedDelivery(
                each,
                endpoints[each.endpoint_id],
                targets[each.endpoint_id],
                content.segment,
                content.variables,
                content.bodies[0],
                content.visible[0],
                until_s,
                not content.loaded,
            )
            for each, content in zip(claimed, contents, strict=True)
        ]

    async def _prepare_groups(
        self,
        connection: Connection,
        groups: Sequence[ClaimedGroup],
        endpoints: Mapping[int, CallbackEndpoint],
        until_s: float,
    ) -> dict[int, list[GroupedDelivery]]:
        """Return the claimed deliveries ready to be posted in batches, by endpoint. If this raises,
        the claims are lost.
        """
        bytes_max = self._slots.bytes_per_claim
        contents = await self._loader.load(connection, groups, endpoints, bytes_max)
        called = [endpoints[each] for each in {group.endpoint_id for group in groups}]
        targets = await self._loader.targets(connection, called)
        found: dict[int, list[GroupedDelivery]] = {}
        for group, content in zip(groups, contents, strict=True):
            endpoint_id = group.endpoint_id
            found.setdefault(endpoint_id, []).extend(
                prepared_group(
                    group, endpoints[endpoint_id], targets[endpoint_id], content, until_s
                )
            )
        return found


def _is_batched(
    group: ClaimedGroup, due: Mapping[int, CallbackEndpoint], probes: frozenset[int]
) -> bool:
    """Return whether the deliveries are posted in batches; a probe has one event."""
    return due[group.endpoint_id].batch_events_max is not None and group.endpoint_id not in probes


def _marked(claimed: Sequence[Claimed], probes: Probes) -> Sequence[Claimed]:
    """Return the claims with probes marked."""
    if not probes.endpoints:
        return claimed
    return [
        each._replace(
            probe=each.endpoint_id in probes.endpoints,
            early_s=probes.early.get(DeliveryKey(*each[1:4]), 0.0),
        )
        for each in claimed
    ]


def _position(delivery: GroupedDelivery) -> tuple[int, int]:
    return delivery.common.group.segment_id, delivery.sequence


def _count(groups: Sequence[ClaimedGroup]) -> Counter[int]:
    """Return the number of claimed deliveries by endpoint."""
    counts: Counter[int] = Counter()
    for group in groups:
        counts[group.endpoint_id] += len(group.sequences)
    return counts


async def _cancel(connection: Connection, found: ScanResult) -> None:
    for endpoint_id in found.deleted:
        count = await claims.cancel(connection, endpoint_id)
        metrics.CALLBACK_CANCELLED.inc(count)
