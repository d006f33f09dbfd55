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
from delivery.callbacks.body import Body
from delivery.callbacks.claims import Claimed, Endpoint, Found, Lane
from delivery.callbacks.client import Client
from delivery.callbacks.guard import Guard
from delivery.callbacks.load import Loader
from delivery.callbacks.outbox import Disable, Outbox
from delivery.callbacks.post import Ended, Target, not_sent, post
from delivery.callbacks.results import Result
from delivery.callbacks.retry import Decision, decide
from delivery.callbacks.signature import message_id
from delivery.callbacks.slots import Slots
from delivery.callbacks.turns import Turns
from eventhub import limits, metrics
from eventhub.clock import SystemClock
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog.database import AWAY, Connection, answered_within
from eventhub.eventlog.log import ReadsArchive
from eventhub.logs import get_logger
from registrations.endpoints.addresses import CallbackAddresses

log = get_logger(__name__)
OnConnection = Callable[[Connection], Awaitable[None]]
_START = Lane(0, 0, -1)


class Terms(NamedTuple):
    """What a drain needs to know. `disable` ends an endpoint that answered 410."""

    database_url: str
    secret_key: str
    addresses: CallbackAddresses
    disable: Disable
    archive: ReadsArchive | None = None


class Work(NamedTuple):
    """A claimed delivery with all that posting it takes; `until_s` is when its claim ends, on the
    loop's clock.
    """

    claimed: Claimed
    target: Target
    body: Body | None  # None: the event cannot be read just now
    segment: str
    until_s: float


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
        self._lanes_go_on = False  # a lane is left that holds more than was claimed of it
        self._stopping = False
        self._outbox = Outbox(terms.disable, self._lanes_left)
        self._loader = Loader(terms.secret_key, terms.archive)
        self._posting: set[asyncio.Task[None]] = set()
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
        await stop.wait()
        self._stopping = True
        self._stir.set()
        await asyncio.wait([claiming], timeout=limits.CALLBACK_STOP_S_MAX / 4)
        await self._finish(claiming, writing)
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
                await self._with_connection("last results", self._outbox.flush)
        except (DatabaseUnavailable, psycopg.Error, *AWAY) as error:
            log.warning("callback_results_lost", reason=type(error).__name__)

    async def _connected(self, name: str, work: OnConnection) -> None:
        """Do the work on a connection, and on another one when that breaks; nothing ends it but the
        stop.
        """
        while not self._stopping:
            try:
                await self._with_connection(name, work)
            except (DatabaseUnavailable, psycopg.Error, *AWAY) as error:
                log.info("callbacks_wait_for_database", reason=type(error).__name__)
            except Exception:
                log.exception("callbacks_failed", part=name)
            await asyncio.sleep(limits.RECONNECT_PAUSE_S)

    async def _with_connection(self, name: str, work: OnConnection) -> None:
        connection = await claims.open_connection(self._terms.database_url, name)
        try:
            await work(connection)
        finally:
            connection.pgconn.finish()  # at once, also when the server does not answer

    async def _claim(self, connection: Connection) -> None:
        while not self._stopping:
            self._stir.clear()
            self._more = True
            if self._slots.free > 0 and not self._outbox.full:
                with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                    self._more = await self._turn(connection)
            metrics.CALLBACK_SLOTS.set(self._slots.held)
            await self._pause()

    async def _pause(self) -> None:
        """Until something stirs, and for a second at most; for a moment if a look was cut short."""
        cut = self._endpoints_after > 0 or self._lanes_after > _START
        most_s = limits.CALLBACK_SCAN_NEXT_S if cut else limits.CALLBACK_SCAN_INTERVAL_S
        try:
            async with asyncio.timeout(most_s):
                await self._stir.wait()
        except TimeoutError:
            return
        if self._more:
            await asyncio.sleep(limits.CALLBACK_GATHER_S)

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
        await self._cancel(connection, found)
        wanted = self._slots.grant(self._parallel.order(due.values()))
        self._parallel.grant(due, wanted)
        if not wanted:
            return bool(due) or found.last is not None
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        claimed = await claims.claim_parallel(connection, wanted)
        for work in await self._loaded(connection, claimed, due, until_s):
            self._slots.hold(work.claimed.endpoint_id)
            self._start(self._deliver(work))
        return (
            len(claimed) >= sum(wanted.values())
            or wanted.keys() != due.keys()
            or found.last is not None
        )

    async def _claim_ordered(self, connection: Connection) -> bool:
        found = await claims.scan_ordered(connection, self._lanes_after)
        due = self._ordered.due(self._lanes_after, found)
        self._lanes_after = found.last or _START
        await self._cancel(connection, found)
        endpoints = {endpoint.id: endpoint for endpoint in due.values()}
        room = self._slots.grant(self._ordered.order(endpoints.values()))
        self._ordered.grant(due, room)
        lanes = []
        for lane in due:
            if room.get(lane.endpoint_id, 0) > 0:
                room[lane.endpoint_id] -= 1
                lanes.append(lane)
        if not lanes:
            return bool(due) or found.last is not None
        until_s = self._clock.monotonic_s() + limits.CALLBACK_CLAIM_S
        taken = await claims.claim_ordered(connection, lanes)
        flat = [each for lane in taken for each in lane]
        works = iter(await self._loaded(connection, flat, endpoints, until_s))
        for lane_claims in taken:
            self._slots.hold(lane_claims[0].endpoint_id)
            self._start(self._deliver_lane(list(islice(works, len(lane_claims)))))
        return len(lanes) < len(due) or found.last is not None

    async def _cancel(self, connection: Connection, found: Found) -> None:
        for endpoint_id in found.deleted:
            count = await claims.cancel(connection, endpoint_id)
            metrics.CALLBACK_CANCELLED.inc(count)

    async def _loaded(
        self,
        connection: Connection,
        claimed: Sequence[Claimed],
        endpoints: dict[int, Endpoint],
        until_s: float,
    ) -> list[Work]:
        """What was claimed, ready to be posted. If this fails, the claims end by themselves."""
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

    async def _deliver_lane(self, works: list[Work]) -> None:
        """One after the other, until one is to be tried again: the lane is closed until then."""
        first, left = works[0].claimed, list(works)
        try:
            while left and not self._stopping:
                decision = await self._try(left.pop(0))
                if decision is None or decision.state == "pending":
                    break
            self._lanes_go_on |= not left and len(works) >= limits.CALLBACK_LANE_DELIVERIES_MAX
        finally:
            for work in left:
                self._outbox.give_back(work.claimed)
            self._outbox.leave(first.lane, first.token)
            self._slots.release(first.endpoint_id)

    async def _try(self, work: Work) -> Decision | None:
        """Post once and hand the result to the outbox; None if there was no time for it."""
        claimed = work.claimed
        if work.until_s - self._clock.monotonic_s() < 2 * limits.CALLBACK_TIMEOUT_S_MAX:
            self._outbox.give_back(claimed)
            return None
        request = self._slots.began(claimed.endpoint_id)
        outcome = "internal"
        try:
            tried, attempt = await _posted(self._client, work)
            outcome = tried.outcome
        except asyncio.CancelledError:
            self._outbox.give_back(claimed)
            raise
        finally:
            self._slots.ended(claimed.endpoint_id, request, outcome)
        decision = decide(tried, claimed.attempts + 1, self._random)
        self._outbox.add(Result(claimed, decision, attempt))
        return decision


async def _posted(client: Client, work: Work) -> Ended:
    if work.body is None:
        return not_sent(work.target, "unreadable", "the event cannot be read just now")
    message = message_id(work.segment, work.claimed.sequence, work.claimed.endpoint_id)
    content = work.body.content(work.claimed.registrations)
    return await post(client, work.target, message, content)
