"""Posts claimed deliveries and passes the results to the outbox. A request outlives the unit of
work that claimed it, so one that hangs blocks nothing else. SQL module.
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple

from delivery.callbacks.body import BoundVariables
from delivery.callbacks.claims import Claimed
from delivery.callbacks.client import HttpClient
from delivery.callbacks.failures import EndpointFailures
from delivery.callbacks.heartbeat import WorkerHeartbeat
from delivery.callbacks.load import LoadedContent
from delivery.callbacks.outbox import ResultOutbox
from delivery.callbacks.post import CallbackTarget, PostResult, message_id, not_sent, post
from delivery.callbacks.post_with_token import post_with_token
from delivery.callbacks.results import DeliveryResult
from delivery.callbacks.retry import RetryDecision, decide
from delivery.callbacks.slots import CallbackSlots
from delivery.callbacks.tokens import TokenSource
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog.stored import Cursor

log = get_logger(__name__)


class DispatcherContext(NamedTuple):
    """The objects that the parts of one dispatcher share."""

    clock: Clock
    random: Random
    slots: CallbackSlots
    failures: EndpointFailures
    heartbeat: WorkerHeartbeat
    outbox: ResultOutbox
    tokens: TokenSource


class PreparedDelivery(NamedTuple):
    """A claimed delivery, ready to be posted; its claim expires at `until_s`, on the
    loop's clock.
    """

    claimed: Claimed
    target: CallbackTarget
    content: LoadedContent
    until_s: float

    async def post_once(self, client: HttpClient, tokens: TokenSource) -> PostResult:
        """Make one attempt and return how it ended."""
        body, segment, variables = self.content
        if body is None:
            return not_sent(self.target, "unreadable", "the event cannot be read at present")
        claimed = self.claimed
        message = message_id(segment, claimed.sequence, claimed.endpoint_id)
        if claimed.gap_first is not None:
            message += "_gap"  # the event of that sequence may have been posted before
        if claimed.message_number is not None:
            message += f"_{claimed.message_number}"
        bound = BoundVariables(variables, Cursor(segment, claimed.sequence)) if variables else None
        content = body.content(claimed.registrations, bound)
        if self.target.oauth2 is not None:
            return await post_with_token(client, tokens, self.target, message, content)
        return await post(client, self.target, message, content)


class Posting:
    """The requests of one dispatcher. `on_slot_free`: a slot is free; `on_idle`: no request is
    left.
    """

    def __init__(
        self,
        context: DispatcherContext,
        client: HttpClient,
        on_slot_free: Callable[[], None],
        on_idle: Callable[[], None],
    ) -> None:
        self._clock, self._random, self._slots, self._failures, self._heartbeat = context[:5]
        self._outbox, self._tokens = context.outbox, context.tokens
        self._client = client
        self._on_slot_free = on_slot_free
        self._on_idle = on_idle
        self.requests: set[asyncio.Task[None]] = (
            set()
        )  # a lane is one task with one request at a time
        self.expired_probes: set[int] = set()  # endpoints whose last probe met an expired event
        self.lanes_have_more = False  # a freed lane has more deliveries than were claimed
        self.stopping = False

    def deliver(self, delivery: PreparedDelivery) -> None:
        """Post a delivery."""
        self._slots.hold(delivery.claimed.endpoint_id)
        self._start(self._deliver(delivery))

    def probe(self, deliveries: list[PreparedDelivery]) -> None:
        """Post the first of an endpoint's deliveries that has not expired, and no other."""
        self._slots.hold(deliveries[0].claimed.endpoint_id)
        self._start(self._probe(deliveries))

    def deliver_lane(self, deliveries: list[PreparedDelivery]) -> None:
        """Post an ordered lane's deliveries until one has to be retried."""
        self._slots.hold(deliveries[0].claimed.endpoint_id)
        self._start(self._deliver_lane(deliveries))

    def _start(self, delivery: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(delivery)
        self.requests.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self.requests.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("callback_failed", exc_info=task.exception())
        if not self.requests:
            self._on_idle()

    async def _deliver(self, delivery: PreparedDelivery) -> None:
        try:
            await self._attempt(delivery)
        finally:
            self._slots.release(delivery.claimed.endpoint_id)
            self._on_slot_free()

    async def _probe(self, deliveries: list[PreparedDelivery]) -> None:
        """Probe an endpoint. If all events have expired, the next probe claims more of them, since
        there may be a hundred thousand.
        """
        endpoint_id, left = deliveries[0].claimed.endpoint_id, list(deliveries)
        try:
            while left:
                decision = await self._attempt(left.pop(0))
                if decision is None or decision.state != "expired":
                    self.expired_probes.discard(endpoint_id)
                    return
            if len(self.expired_probes) < limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX:
                self.expired_probes.add(endpoint_id)
            self._outbox.return_probe(endpoint_id)
        finally:
            for delivery in left:
                self._outbox.give_back(delivery.claimed._replace(probe=False))
            self._slots.release(endpoint_id)
            self._on_slot_free()

    async def _deliver_lane(self, deliveries: list[PreparedDelivery]) -> None:
        """Post one delivery after another, until one has to be retried: that closes the lane."""
        first, left = deliveries[0].claimed, list(deliveries)
        probe = first.probe  # until a request is made
        try:
            while left and not self.stopping:
                delivery = left.pop(0)
                if probe:
                    own = delivery.claimed._replace(probe=True, spares=first.spares)
                    delivery = delivery._replace(claimed=own)
                decision = await self._attempt(delivery)
                if decision is None or decision.state == "pending":
                    probe = False
                    break
                probe = probe and decision.state == "expired"
            self.lanes_have_more |= (
                not left and len(deliveries) >= limits.CALLBACK_LANE_DELIVERIES_MAX
            )
        finally:
            for each in left:
                self._outbox.give_back(each.claimed)
            if probe:
                self._outbox.return_probe(first.endpoint_id)
            self._outbox.leave(first.lane, first.token)
            self._slots.release(first.endpoint_id)

    async def _attempt(self, delivery: PreparedDelivery) -> RetryDecision | None:
        """Make an attempt and pass its result to the outbox; None if the claim leaves no time for
        it. An expired event is not posted.
        """
        claimed = delivery.claimed
        late = delivery.until_s - self._clock.monotonic_s() < 2 * limits.CALLBACK_TIMEOUT_S_MAX
        if late or not self._heartbeat.is_alive:
            self._outbox.give_back(claimed)
            return None
        body = None if claimed.forced else delivery.content.body
        if body is not None and 0 < body.expires_at_us <= self._clock.now_us():
            decision = RetryDecision("expired")
            self._outbox.add(DeliveryResult(claimed, decision, None))
            return decision
        request = self._slots.start_request(claimed.endpoint_id)
        outcome = "internal"
        try:
            attempted, attempt = await delivery.post_once(self._client, self._tokens)
            outcome = attempted.code
        except asyncio.CancelledError:
            self._outbox.give_back(claimed)
            raise
        finally:
            self._slots.end_request(claimed.endpoint_id, request, outcome)
        self._failures.record_attempt(claimed.endpoint_id, outcome)
        number = claimed.attempts - claimed.uncounted_attempts + 1
        how = {"probe": claimed.probe, "uncounted": claimed.spares}
        decision = decide(attempted, number, self._random, **how)
        self._outbox.add(DeliveryResult(claimed, decision, attempt))
        return decision
