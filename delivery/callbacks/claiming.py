"""Claims what is due and this worker has room for, and has it posted. SQL module."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from delivery.callbacks import claims
from delivery.callbacks.backoffs import return_probes, take_probes
from delivery.callbacks.claimed import Work
from delivery.callbacks.claims import Claimed, Endpoint, Found, Lane
from delivery.callbacks.load import Loader
from delivery.callbacks.posting import Parts, Posting
from delivery.callbacks.rotation import Turns
from eventhub.base import limits, metrics
from eventhub.postgresql.connections import Connection

_START = Lane(0, 0, -1)


class _Seen(NamedTuple):
    """What a scan found: what is due, by endpoint id or by lane, and how many slots each of its
    endpoints was granted.
    """

    found: Found
    due: dict[Any, Endpoint]
    granted: dict[int, int]


class Claiming:
    """The claims of one drain. `posting` takes what was claimed."""

    def __init__(self, parts: Parts, loader: Loader, posting: Posting) -> None:
        self._clock = parts.clock
        self._slots = parts.slots
        self._health = parts.health
        self._alive = parts.alive
        self._loader = loader
        self._posting = posting
        self._parallel = Turns(parts.random)
        self._ordered = Turns(parts.random)
        self._endpoints_after = 0
        self._lanes_after = _START
        self.pending_s = parts.clock.monotonic_s()  # when a scan last found something pending
        self.count = 0  # deliveries that were claimed

    @property
    def cut(self) -> bool:
        """Whether the last scan did not reach the end."""
        return self._endpoints_after > 0 or self._lanes_after > _START

    async def finds(self, connection: Connection) -> bool:
        """Look once, and claim nothing: true if something is due that there is room for."""
        parallel, ordered = (
            await self._parallel_due(connection),
            await self._ordered_due(connection),
        )
        for seen in (parallel, ordered):
            if seen.found.deleted or self._health.bounded(seen.granted):
                return True
        self._endpoints_after = parallel.found.last or 0
        self._lanes_after = ordered.found.last or _START
        return False

    async def claim(self, connection: Connection) -> bool:
        """Claim once and start posting; true if more may be due."""
        parallel = await self._claim_parallel(connection)
        ordered = await self._claim_ordered(connection)
        return parallel or ordered

    async def _parallel_due(self, connection: Connection) -> _Seen:
        found = await claims.scan_parallel(connection, self._endpoints_after)
        due = self._parallel.due(self._endpoints_after, found)
        self._saw(found)
        return _Seen(found, due, self._slots.grant(self._parallel.order(due.values())))

    async def _ordered_due(self, connection: Connection) -> _Seen:
        found = await claims.scan_ordered(connection, self._lanes_after)
        due = self._ordered.due(self._lanes_after, found)
        self._saw(found)
        endpoints = {endpoint.id: endpoint for endpoint in due.values()}
        return _Seen(found, due, self._slots.grant(self._ordered.order(endpoints.values())))

    def _saw(self, found: Found) -> None:
        if found.failing:
            self.pending_s = self._clock.monotonic_s()
        self._health.saw(found.failing)

    async def _claim_parallel(self, connection: Connection) -> bool:
        found, due, granted = await self._parallel_due(connection)
        self._endpoints_after = found.last or 0
        await _cancel(connection, found)
        self._parallel.grant(due, granted)
        wanted = self._health.bounded(granted)
        probes = await self._probes(connection, wanted)
        expiring = probes & self._posting.expiring
        wanted.update(dict.fromkeys(expiring, limits.CALLBACK_LANE_DELIVERIES_MAX))
        if not wanted:
            return bool(due) or found.last is not None
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        token = self._alive.token()
        claimed = await claims.claim_parallel(connection, wanted, token=token, probes=probes)
        claimed = await self._probing(connection, claimed, probes)
        self._post(await self._loaded(connection, claimed, due, until_s), probes)
        return (
            len(claimed) >= sum(wanted.values())
            or wanted.keys() != due.keys()
            or found.last is not None
        )

    def _post(self, works: Sequence[Work], probes: frozenset[int]) -> None:
        probing: dict[int, list[Work]] = {}
        for work in works:
            endpoint_id = work.claimed.endpoint_id
            if endpoint_id in probes:
                probing.setdefault(endpoint_id, []).append(work)
            else:
                self._posting.deliver(work)
        for found in probing.values():
            self._posting.probe(found)
        self._took(len(works))

    async def _claim_ordered(self, connection: Connection) -> bool:
        found, due, granted = await self._ordered_due(connection)
        self._lanes_after = found.last or _START
        await _cancel(connection, found)
        self._ordered.grant(due, granted)
        room = self._health.bounded(granted)
        probes = await self._probes(connection, room)
        lanes = []
        for lane in due:
            if room.get(lane.endpoint_id, 0) > 0:
                room[lane.endpoint_id] -= 1
                lanes.append(lane)
        if not lanes:
            return bool(due) or found.last is not None
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        token = self._alive.token()
        taken = await claims.claim_ordered(connection, lanes, token=token, probes=probes)
        firsts = await self._probing(connection, [lane[0] for lane in taken], probes)
        flat = [each for first, lane in zip(firsts, taken, strict=True)
                for each in (first, *lane[1:])]  # fmt: skip
        endpoints = {endpoint.id: endpoint for endpoint in due.values()}
        works = iter(await self._loaded(connection, flat, endpoints, until_s))
        for lane_claims in taken:
            self._posting.deliver_lane(list(islice(works, len(lane_claims))))
        self._took(len(flat))
        return len(lanes) < len(due) or found.last is not None

    def _took(self, count: int) -> None:
        self._alive.took()
        self.count += count

    async def _probes(self, connection: Connection, wanted: dict[int, int]) -> frozenset[int]:
        """The endpoints that back off of which this worker makes the one request; those of which
        others do are taken out of `wanted`.
        """
        backing_off = [each for each in wanted if self._health.backs_off(each)]
        if not backing_off:
            return frozenset()
        probes = await take_probes(connection, backing_off)
        for each in backing_off:
            if each not in probes:
                del wanted[each]
        return probes

    async def _probing(
        self, connection: Connection, claimed: list[Claimed], probes: frozenset[int]
    ) -> list[Claimed]:
        """The same with the probes marked; those of which nothing was claimed are for others."""
        if not probes:
            return claimed
        unused = probes - {each.endpoint_id for each in claimed}
        if unused:
            await return_probes(connection, unused)
        return [
            each._replace(probe=True, spares=self._health.spares(each.endpoint_id))
            if each.endpoint_id in probes
            else each
            for each in claimed
        ]

    async def _loaded(
        self,
        connection: Connection,
        claimed: Sequence[Claimed],
        endpoints: dict[int, Endpoint],
        until_s: float,
    ) -> list[Work]:
        """What was claimed, ready to be posted. If this fails, the claims are lost."""
        loaded = await self._loader.load(connection, claimed, endpoints)
        targets = {each: self._loader.target(endpoints[each])
                   for each in {claim.endpoint_id for claim in claimed}}  # fmt: skip
        return [
            Work(each, targets[each.endpoint_id], body, segment, until_s)
            for each, (body, segment) in zip(claimed, loaded, strict=True)
        ]


async def _cancel(connection: Connection, found: Found) -> None:
    for endpoint_id in found.deleted:
        count = await claims.cancel(connection, endpoint_id)
        metrics.CALLBACK_CANCELLED.inc(count)
