"""Drains what is due: claims as slots get free, posts, and leaves the results to the outbox.

One event loop; PostgreSQL says what is due, and hints only make the look sooner. Any number of
drains work beside each other. Sql module.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import psycopg

from delivery.callbacks import claims
from delivery.callbacks.alive import Alive
from delivery.callbacks.backoffs import return_probes, take_probes
from delivery.callbacks.claims import Claimed, Endpoint, Found, Lane
from delivery.callbacks.client import Client
from delivery.callbacks.guard import Guard
from delivery.callbacks.health import Health
from delivery.callbacks.load import Loader
from delivery.callbacks.outbox import Disable, Outbox
from delivery.callbacks.results import Result
from delivery.callbacks.retry import Decision, decide
from delivery.callbacks.slots import Slots
from delivery.callbacks.turns import Turns
from delivery.callbacks.work import Work
from eventhub import limits, metrics
from eventhub.clock import SystemClock
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog.database import AWAY, Connection, answered_within
from eventhub.eventlog.log import ReadsArchive
from eventhub.logs import Seldom, get_logger
from registrations.endpoints.addresses import CallbackAddresses

log = get_logger(__name__)
seldom = Seldom(log)
OnConnection = Callable[[Connection], Awaitable[None]]
_START = Lane(0, 0, -1)


class Terms(NamedTuple):
    """What a drain needs to know. `disable` ends an endpoint that answered 410."""

    database_url: str
    secret_key: str
    addresses: CallbackAddresses
    disable: Disable
    archive: ReadsArchive | None = None


class Drain:
    """One worker's drain. `run` it in one event loop; `wake` from there too."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._clock = SystemClock()
        self._slots = Slots(self._clock)
        self._random = Random()  # noqa: S311 - spreads retries, keeps no secret
        self._guard = Guard(terms.addresses)
        self._client = Client(self._guard)
        self._stir = asyncio.Event()  # look again: a hint, a free slot, a lane that was left
        self._more = False  # the last look left something behind
        self._pending_s = self._clock.monotonic_s()  # when a look last found something pending
        self._lanes_go_on = False  # a lane is left that holds more than was claimed of it
        self._stopping = False
        self._health = Health()
        self._alive = Alive(self._clock, self.wake, lambda: bool(self._posting))
        self._outbox = Outbox(terms.disable, self._health, self._lanes_left, self.wake)
        self._loader = Loader(terms.secret_key, self._clock, terms.archive)
        self._posting: set[asyncio.Task[None]] = set()
        self._expiring: set[int] = set()  # endpoints whose last probe found its event expired
        self._endpoints_after = 0
        self._lanes_after = _START
        self._parallel = Turns(self._random)
        self._ordered = Turns(self._random)

    def wake(self) -> None:
        """Look now."""
        self._stir.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Drain until `stop` is set; then wait a little for answers, and give back the rest."""
        claiming = asyncio.create_task(self._connected("drain", self._claim))
        writing = asyncio.create_task(self._connected("results", self._outbox.run))
        living = asyncio.create_task(self._connected("alive", self._alive.run))
        await stop.wait()
        self._stopping = True
        self._stir.set()
        await asyncio.wait([claiming], timeout=limits.CALLBACK_STOP_S_MAX / 4)
        await self._finish(claiming, writing, living)
        self._client.close()
        self._guard.close()

    async def _finish(self, *tasks: asyncio.Task[None]) -> None:
        """Answers that come in time are written, requests that are left are given back."""
        if self._posting:
            await asyncio.wait(self._posting, timeout=limits.CALLBACK_STOP_S_MAX / 2)
        left = [*self._posting, *tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        try:
            async with asyncio.timeout(limits.CALLBACK_STOP_S_MAX / 4):
                await self._with_connection("last results", self._end)
        except (DatabaseUnavailable, psycopg.Error, *AWAY) as error:
            log.warning("callback_results_lost", reason=type(error).__name__)

    async def _end(self, connection: Connection) -> None:
        await self._outbox.flush(connection)
        await self._alive.free_lost(connection)
        await self._alive.leave(connection)

    async def _connected(self, name: str, work: OnConnection) -> None:
        """Do the work on a connection, and on another one when that breaks; nothing ends it but the
        stop.
        """
        pause_s = limits.RECONNECT_PAUSE_S
        while not self._stopping:
            began_s = self._clock.monotonic_s()
            try:
                await self._with_connection(name, work)
            except (DatabaseUnavailable, psycopg.Error, *AWAY) as error:
                seldom.warning("callbacks_wait_for_database", reason=type(error).__name__)
            except Exception:
                log.exception("callbacks_failed", part=name)
            if self._clock.monotonic_s() - began_s > 2 * limits.CONNECT_TIMEOUT_S:
                pause_s = limits.RECONNECT_PAUSE_S  # it was connected
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.RECONNECT_PAUSE_S_MAX)

    async def _with_connection(self, name: str, work: OnConnection) -> None:
        connection = await claims.open_connection(self._terms.database_url, name)
        try:
            await work(connection)
        finally:
            connection.pgconn.finish()  # at once, also when the server does not answer

    async def _claim(self, connection: Connection) -> None:
        await self._alive.free_lost(connection)
        while not self._stopping:
            self._stir.clear()
            self._more = True
            if self._alive.now and self._slots.free > 0 and not self._outbox.full:
                with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                    self._more = await self._turn(connection)
            metrics.CALLBACK_SLOTS.set(self._slots.held)
            await self._pause()

    async def _pause(self) -> None:
        """Until something stirs, and for a second at most; for a moment if a look was cut short."""
        cut = self._endpoints_after > 0 or self._lanes_after > _START
        most_s = limits.CALLBACK_SCAN_NEXT_S if cut else self._interval_s()
        try:
            async with asyncio.timeout(most_s):
                await self._stir.wait()
        except TimeoutError:
            return
        if self._more:
            await asyncio.sleep(limits.CALLBACK_GATHER_S)

    def _interval_s(self) -> float:
        """Where nothing is pending only a lost word of new deliveries is waited for."""
        idle_s = self._clock.monotonic_s() - self._pending_s
        is_idle = not self._posting and idle_s > limits.CALLBACK_REST_AFTER_S
        return limits.CALLBACK_REST_INTERVAL_S if is_idle else limits.CALLBACK_SCAN_INTERVAL_S

    def _freed(self) -> None:
        if self._more:
            self._stir.set()

    def _lanes_left(self) -> None:
        if self._lanes_go_on:
            self._lanes_go_on = False
            self._stir.set()
        self._freed()

    async def _turn(self, connection: Connection) -> bool:
        """Claim once and start posting; true if more may be due."""
        parallel = await self._claim_parallel(connection)
        ordered = await self._claim_ordered(connection)
        return parallel or ordered

    async def _claim_parallel(self, connection: Connection) -> bool:
        found = await claims.scan_parallel(connection, self._endpoints_after)
        due = self._parallel.due(self._endpoints_after, found)
        self._endpoints_after = found.last or 0
        await self._took(connection, found)
        wanted = self._slots.grant(self._parallel.order(due.values()))
        self._parallel.grant(due, wanted)
        wanted = self._health.bounded(wanted)
        probes = await self._probes(connection, wanted)
        wanted.update(dict.fromkeys(probes & self._expiring, limits.CALLBACK_LANE_DELIVERIES_MAX))
        if not wanted:
            return bool(due) or found.last is not None
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        token = self._alive.token()
        claimed = await claims.claim_parallel(connection, wanted, token=token, probes=probes)
        claimed = await self._probing(connection, claimed, probes)
        probing: dict[int, list[Work]] = {each: [] for each in probes}
        for work in await self._loaded(connection, claimed, due, until_s):
            endpoint_id = work.claimed.endpoint_id
            if endpoint_id in probing:
                probing[endpoint_id].append(work)
                continue
            self._slots.hold(endpoint_id)
            self._start(self._deliver(work))
        for endpoint_id, works in probing.items():
            if works:
                self._slots.hold(endpoint_id)
                self._start(self._probe(works))
        self._alive.took()
        return (
            len(claimed) >= sum(wanted.values())
            or wanted.keys() != due.keys()
            or found.last is not None
        )

    async def _claim_ordered(self, connection: Connection) -> bool:
        found = await claims.scan_ordered(connection, self._lanes_after)
        due = self._ordered.due(self._lanes_after, found)
        self._lanes_after = found.last or _START
        await self._took(connection, found)
        endpoints = {endpoint.id: endpoint for endpoint in due.values()}
        room = self._slots.grant(self._ordered.order(endpoints.values()))
        self._ordered.grant(due, room)
        room = self._health.bounded(room)
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
        works = iter(await self._loaded(connection, flat, endpoints, until_s))
        for lane_claims in taken:
            self._slots.hold(lane_claims[0].endpoint_id)
            self._start(self._deliver_lane(list(islice(works, len(lane_claims)))))
        self._alive.took()
        return len(lanes) < len(due) or found.last is not None

    async def _took(self, connection: Connection, found: Found) -> None:
        """What a scan says of endpoints, beside what is due."""
        if found.failing:
            self._pending_s = self._clock.monotonic_s()
        self._health.saw(found.failing)
        for endpoint_id in found.deleted:
            count = await claims.cancel(connection, endpoint_id)
            metrics.CALLBACK_CANCELLED.inc(count)

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

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._posting.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._posting.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("callback_failed", exc_info=task.exception())

    async def _deliver(self, work: Work) -> None:
        try:
            await self._try(work)
        finally:
            self._slots.release(work.claimed.endpoint_id)
            self._freed()

    async def _probe(self, works: list[Work]) -> None:
        """Post the first that has not expired to an endpoint that backs off, and no other. Where
        one has, the next probe claims more: there may be a hundred thousand.
        """
        endpoint_id, left = works[0].claimed.endpoint_id, list(works)
        try:
            while left:
                decision = await self._try(left.pop(0))
                if decision is None or decision.state != "expired":
                    self._expiring.discard(endpoint_id)
                    return
            if len(self._expiring) < limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
                self._expiring.add(endpoint_id)
            self._outbox.return_probe(endpoint_id)
        finally:
            for work in left:
                self._outbox.give_back(work.claimed._replace(probe=False))
            self._slots.release(endpoint_id)
            self._freed()

    async def _deliver_lane(self, works: list[Work]) -> None:
        """One after the other, until one is to be tried again: the lane is closed until then."""
        first, left = works[0].claimed, list(works)
        probe = first.probe  # until something is posted
        try:
            while left and not self._stopping:
                work = left.pop(0)
                if probe:
                    own = work.claimed._replace(probe=True, spares=first.spares)
                    work = work._replace(claimed=own)
                decision = await self._try(work)
                if decision is None or decision.state == "pending":
                    probe = False
                    break
                probe = probe and decision.state == "expired"
            self._lanes_go_on |= not left and len(works) >= limits.CALLBACK_LANE_DELIVERIES_MAX
        finally:
            for each in left:
                self._outbox.give_back(each.claimed)
            if probe:
                self._outbox.return_probe(first.endpoint_id)
            self._outbox.leave(first.lane, first.token)
            self._slots.release(first.endpoint_id)

    async def _try(self, work: Work) -> Decision | None:
        """Post once and hand the result to the outbox; None if there was no time for it. What has
        expired is not posted.
        """
        claimed = work.claimed
        late = work.until_s - self._clock.monotonic_s() < 2 * limits.CALLBACK_TIMEOUT_S_MAX
        if late or not self._alive.now:
            self._outbox.give_back(claimed)
            return None
        if work.body is not None and 0 < work.body.expires_at_us <= self._clock.now_us():
            decision = Decision("expired")
            self._outbox.add(Result(claimed, decision, None))
            return decision
        request = self._slots.began(claimed.endpoint_id)
        outcome = "internal"
        try:
            tried, attempt = await work.posted(self._client)
            outcome = tried.outcome
        except asyncio.CancelledError:
            self._outbox.give_back(claimed)
            raise
        finally:
            self._slots.ended(claimed.endpoint_id, request, outcome)
        self._health.ended(claimed.endpoint_id, outcome)
        number = claimed.attempts - claimed.spared + 1
        how = {"probe": claimed.probe, "spares": claimed.spares}
        decision = decide(tried, number, self._random, **how)
        self._outbox.add(Result(claimed, decision, attempt))
        return decision
