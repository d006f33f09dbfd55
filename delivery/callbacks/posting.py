"""Posts claimed deliveries and passes the results to the outbox. A request outlives the unit of
work that claimed it, so one that hangs blocks nothing else. SQL module.
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple

from delivery.callbacks.body import BoundVariables, EventFacts
from delivery.callbacks.claims import CallbackEndpoint, Claimed
from delivery.callbacks.client import HttpClient
from delivery.callbacks.failures import EndpointFailures
from delivery.callbacks.heartbeat import WorkerHeartbeat
from delivery.callbacks.load import LoadedContent
from delivery.callbacks.outbox import ResultOutbox
from delivery.callbacks.post import CallbackTarget, PostResult, message_id, not_sent, post
from delivery.callbacks.post_with_token import post_with_token
from delivery.callbacks.results import DeliveryResult
from delivery.callbacks.retry import AttemptOutcome, RetryDecision, decide
from delivery.callbacks.slots import CallbackSlots
from delivery.callbacks.tokens import TokenSource
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger
from eventhub.eventlog.stored import Cursor

log = get_logger(__name__)
UNSENT = ("expired", "cancelled")  # how a delivery ends without a request


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
    endpoint: CallbackEndpoint
    target: CallbackTarget
    content: LoadedContent
    until_s: float

    @property
    def timeout_s(self) -> float:
        """The longest time of an attempt, in seconds."""
        return self.endpoint.timeout_s or limits.CALLBACK_TIMEOUT_S_MAX

    async def post_once(self, client: HttpClient, tokens: TokenSource) -> PostResult:
        """Make one attempt and return how it ended."""
        body, segment, variables, _ = self.content
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
            return await post_with_token(
                client, tokens, self.target, message, content, timeout_s=self.timeout_s
            )
        return await post(client, self.target, message, content, timeout_s=self.timeout_s)


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
        # endpoints whose last probe met only events that are not to be sent
        self.expired_probes: set[int] = set()
        self.lanes_have_more = False  # a freed lane has more deliveries than were claimed
        self.stopping = False

    def deliver(self, delivery: PreparedDelivery) -> None:
        """Post a delivery."""
        self._slots.hold(delivery.claimed.endpoint_id)
        self._start(self._deliver(delivery))

    def probe(self, deliveries: list[PreparedDelivery]) -> None:
        """Post the first of an endpoint's deliveries that is still to be sent, and no other."""
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
        """Probe an endpoint. If no event is to be sent, the next probe claims more of them, since
        there may be a hundred thousand.
        """
        endpoint_id, left = deliveries[0].claimed.endpoint_id, list(deliveries)
        try:
            while left:
                decision = await self._attempt(left.pop(0))
                if decision is None or decision.state not in UNSENT:
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
                    delivery = delivery._replace(claimed=delivery.claimed._replace(probe=True))
                decision = await self._attempt(delivery)
                if decision is None or decision.state == "pending":
                    probe = False
                    break
                probe = probe and decision.state in UNSENT
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
        it. An event is not posted if it has expired, or is not for the endpoint any more.
        """
        claimed = delivery.claimed
        needed_s = delivery.timeout_s + limits.CALLBACK_TIMEOUT_S_MAX
        late = delivery.until_s - self._clock.monotonic_s() < needed_s
        if late or not self._heartbeat.is_alive:
            self._outbox.give_back(claimed)
            return None
        unsent = self._unsent(delivery)
        if unsent is not None:
            self._outbox.add(DeliveryResult(claimed, unsent, None))
            return unsent
        request = self._slots.start_request(claimed.endpoint_id)
        attempted = AttemptOutcome("internal")
        try:
            attempted, attempt = await delivery.post_once(self._client, self._tokens)
        except asyncio.CancelledError:
            self._outbox.give_back(claimed)
            raise
        finally:
            self._slots.end_request(claimed.endpoint_id, request, attempted.code)
        self._failures.record_attempt(claimed.endpoint_id, attempted)
        number = claimed.attempts - claimed.uncounted_attempts + 1
        decision = decide(attempted, number, self._random, delivery.endpoint.retry_schedule)
        self._outbox.add(DeliveryResult(claimed, decision, attempt))
        if decision.state == "delivered":
            self._measure(delivery.content)
        return decision

    def _unsent(self, delivery: PreparedDelivery) -> RetryDecision | None:
        """Return the end of a delivery that is not to be sent, else None."""
        body = delivery.content.body
        facts = EventFacts() if body is None else body.facts
        if not delivery.claimed.forced and 0 < facts.expires_at_us <= self._clock.now_us():
            return RetryDecision("expired")
        return None if delivery.content.is_visible else RetryDecision("cancelled")

    def _measure(self, content: LoadedContent) -> None:
        appended_at_us = content.body.facts.appended_at_us if content.body is not None else 0
        if appended_at_us:
            metrics.CALLBACK_LATENCY.observe((self._clock.now_us() - appended_at_us) / 1e6)
