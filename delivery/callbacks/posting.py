"""Posts what was claimed and leaves the results to the outbox. Requests go on beside the unit of
work that claimed them, so that one that hangs holds up nothing else. SQL module.
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple

from delivery.callbacks.claimed import Work
from delivery.callbacks.client import Client
from delivery.callbacks.health import Health
from delivery.callbacks.heartbeat import Alive
from delivery.callbacks.outbox import Outbox
from delivery.callbacks.results import Result
from delivery.callbacks.retry import Decision, decide
from delivery.callbacks.slots import Slots
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger

log = get_logger(__name__)


class Parts(NamedTuple):
    """What the parts of one drain share."""

    clock: Clock
    random: Random
    slots: Slots
    health: Health
    alive: Alive
    outbox: Outbox


class Posting:
    """The requests of one drain. `freed` is called when a slot is free, `ended` when no request is
    left.
    """

    def __init__(
        self, parts: Parts, client: Client, freed: Callable[[], None], ended: Callable[[], None]
    ) -> None:
        self._clock, self._random, self._slots, self._health, self._alive, self._outbox = parts
        self._client = client
        self._freed = freed
        self._ended = ended
        self.requests: set[asyncio.Task[None]] = set()  # some are lanes, of one request at a time
        self.expiring: set[int] = set()  # endpoints whose last probe found its event expired
        self.lanes_go_on = False  # a lane is left that holds more than was claimed of it
        self.stopping = False

    def deliver(self, work: Work) -> None:
        """Post a delivery."""
        self._slots.hold(work.claimed.endpoint_id)
        self._start(self._deliver(work))

    def probe(self, works: list[Work]) -> None:
        """Post the first of an endpoint's deliveries that has not expired, and no other."""
        self._slots.hold(works[0].claimed.endpoint_id)
        self._start(self._probe(works))

    def deliver_lane(self, works: list[Work]) -> None:
        """Post an ordered lane's deliveries, until one is to be tried again."""
        self._slots.hold(works[0].claimed.endpoint_id)
        self._start(self._deliver_lane(works))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.requests.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self.requests.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("callback_failed", exc_info=task.exception())
        if not self.requests:
            self._ended()

    async def _deliver(self, work: Work) -> None:
        try:
            await self._try(work)
        finally:
            self._slots.release(work.claimed.endpoint_id)
            self._freed()

    async def _probe(self, works: list[Work]) -> None:
        """Where one has expired, the next probe claims more: there may be a hundred thousand."""
        endpoint_id, left = works[0].claimed.endpoint_id, list(works)
        try:
            while left:
                decision = await self._try(left.pop(0))
                if decision is None or decision.state != "expired":
                    self.expiring.discard(endpoint_id)
                    return
            if len(self.expiring) < limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
                self.expiring.add(endpoint_id)
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
            while left and not self.stopping:
                work = left.pop(0)
                if probe:
                    own = work.claimed._replace(probe=True, spares=first.spares)
                    work = work._replace(claimed=own)
                decision = await self._try(work)
                if decision is None or decision.state == "pending":
                    probe = False
                    break
                probe = probe and decision.state == "expired"
            self.lanes_go_on |= not left and len(works) >= limits.CALLBACK_LANE_DELIVERIES_MAX
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
        number = claimed.attempts - claimed.uncounted_attempts + 1
        how = {"probe": claimed.probe, "spares": claimed.spares}
        decision = decide(tried, number, self._random, **how)
        self._outbox.add(Result(claimed, decision, attempt))
        return decision
