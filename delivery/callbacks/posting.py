"""Posts claimed deliveries and passes the results to the outbox. A request outlives the unit of
work that claimed it, so one that hangs blocks nothing else. SQL module.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from delivery.callbacks.batch_run import (
    BatchDelivery,
    BatchEvent,
    BatchRun,
    attempt_of_event,
    bytes_of,
    delivered_batch,
)
from delivery.callbacks.batches import BatchSize
from delivery.callbacks.failures import EndpointFailures
from delivery.callbacks.heartbeat import WorkerHeartbeat
from delivery.callbacks.outbox import ResultOutbox
from delivery.callbacks.post import PostResult
from delivery.callbacks.prepared import PreparedDelivery
from delivery.callbacks.results import AttemptRecord, DeliveryResult
from delivery.callbacks.retry import AttemptOutcome, RetryDecision, decide
from delivery.callbacks.sending import DeliverySender
from delivery.callbacks.slots import CallbackSlots
from eventhub.base import limits, metrics
from eventhub.base.clock import Clock
from eventhub.base.logs import get_logger

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
    sender: DeliverySender


class Posting:
    """The requests of one dispatcher. `on_slot_free`: a slot is free; `on_idle`: no request is
    left.
    """

    def __init__(
        self,
        context: DispatcherContext,
        on_slot_free: Callable[[], None],
        on_idle: Callable[[], None],
    ) -> None:
        self._clock, self._random, self._slots, self._failures, self._heartbeat = context[:5]
        self._outbox, self._sender = context.outbox, context.sender
        self._on_slot_free = on_slot_free
        self._on_idle = on_idle
        self.requests: set[asyncio.Task[None]] = (
            set()
        )  # a lane is one task with one request at a time
        # endpoints whose last probe met only events that are not to be sent
        self.expired_probes: set[int] = set()
        self.stopping = False

    def deliver(self, deliveries: list[PreparedDelivery]) -> None:
        """Post deliveries of an endpoint, one after the other, until one has to be retried or the
        endpoint has fewer slots.
        """
        self._hold(deliveries)
        self._start(self._deliver(deliveries))

    def probe(self, deliveries: list[PreparedDelivery]) -> None:
        """Post the first of an endpoint's deliveries that is still to be sent, and no other."""
        self._hold(deliveries)
        self._start(self._probe(deliveries))

    def deliver_lane(self, deliveries: list[PreparedDelivery]) -> None:
        """Post an ordered lane's deliveries until one has to be retried."""
        self._hold(deliveries)
        self._start(self._deliver_lane(deliveries))

    def deliver_batches(
        self, deliveries: Sequence[BatchDelivery], size: BatchSize, *, ordered: bool
    ) -> None:
        """Post deliveries of an endpoint in batches; ordered ones are those of whole lanes."""
        run = BatchRun(deliveries, size, ordered=ordered)
        self._hold(deliveries)
        self._start(self._deliver_batches(run))

    def _hold(self, deliveries: Sequence[BatchDelivery]) -> None:
        """Take a slot for deliveries of an endpoint."""
        loaded = [each for each in deliveries if not each.is_deferred]
        self._slots.hold(deliveries[0].part.endpoint_id, bytes_of(loaded), len(loaded))

    def _start(self, delivery: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(delivery)
        self.requests.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self.requests.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("callback_failed", exc_info=task.exception())
        if not self._slots.held:
            self._outbox.hurry()
        if not self.requests:
            self._on_idle()

    async def _deliver(self, deliveries: list[PreparedDelivery]) -> None:
        endpoint_id, left = deliveries[0].claimed.endpoint_id, deliveries[::-1]
        try:
            decision = await self._attempt(left.pop())
            while left and self._goes_on(endpoint_id, decision):
                decision = await self._attempt(left.pop())
        finally:
            for delivery in left:
                self._outbox.give_back(delivery.claimed)
            self._slots.release(endpoint_id, bytes_of(deliveries))
            self._on_slot_free()

    def _goes_on(self, endpoint_id: int, decision: RetryDecision | None) -> bool:
        """Return whether the next delivery of a slot is posted after one that ended so."""
        if self.stopping or decision is None or decision.state == "pending":
            return False
        return not self._slots.exceeds(endpoint_id)

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
            self._slots.release(endpoint_id, bytes_of(deliveries))
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
        finally:
            for each in left:
                self._outbox.give_back(each.claimed)
            if probe:
                self._outbox.return_probe(first.endpoint_id)
            self._outbox.leave(first.lane, first.token)
            self._slots.release(first.endpoint_id, bytes_of(deliveries))

    async def _attempt(self, delivery: PreparedDelivery) -> RetryDecision | None:
        """Make an attempt and pass its result to the outbox; None if the claim leaves no time for
        it. An event is not posted if it has expired, or is not for the endpoint any more.
        """
        claimed = delivery.claimed
        if self._is_late(delivery):
            self._outbox.give_back(claimed)
            return None
        if self._is_unsent(delivery):
            return self._end(delivery)
        with self._request(claimed.endpoint_id) as request:
            try:
                attempted, attempt, _ = await self._sender.send(delivery)
                request.outcome = attempted
            except asyncio.CancelledError:
                self._outbox.give_back(claimed)
                raise
        return self._record(delivery, attempted, attempt)

    def _is_stopped(self, delivery: BatchDelivery) -> bool:
        return self.stopping or self._is_late(delivery)

    def _is_late(self, delivery: BatchDelivery) -> bool:
        """Return True if the claim may not last as long as an attempt, or is for a later claim."""
        left_s = delivery.until_s - self._clock.monotonic_s()
        needed_s = delivery.timeout_s + limits.CALLBACK_TIMEOUT_S_MAX
        return left_s < needed_s or not self._heartbeat.is_alive or delivery.is_deferred

    def _is_unsent(self, delivery: BatchDelivery) -> bool:
        """Return True if the event is not to be sent any more."""
        return self._is_expired(delivery) or not delivery.is_visible

    def _is_unpostable(self, delivery: BatchDelivery) -> bool:
        """Return True if the event cannot be in a batch: it is not to be sent, or unreadable."""
        body = delivery.body
        if body is None or not delivery.is_visible:
            return True
        return body.facts.expires_at_us > 0 and self._is_expired(delivery)

    def _is_expired(self, delivery: BatchDelivery) -> bool:
        body = delivery.body
        if body is None or not body.facts.expires_at_us or delivery.is_forced:
            return False
        return body.facts.expires_at_us <= self._clock.now_us()

    def _end(self, delivery: PreparedDelivery) -> RetryDecision:
        """End a delivery that is not to be sent."""
        decision = RetryDecision("expired" if self._is_expired(delivery) else "cancelled")
        self._outbox.add(DeliveryResult(delivery.claimed, decision, None))
        return decision

    @contextmanager
    def _request(self, endpoint_id: int) -> Iterator["_Request"]:
        """Record the start, the end and the outcome of a request."""
        number, request = self._slots.start_request(endpoint_id), _Request()
        try:
            yield request
        finally:
            self._slots.end_request(endpoint_id, number, request.outcome.code)
        self._failures.record_attempt(endpoint_id, request.outcome)

    def _record(
        self,
        delivery: PreparedDelivery,
        attempted: AttemptOutcome,
        attempt: AttemptRecord,
        *,
        is_request: bool = True,
    ) -> RetryDecision:
        """Pass the result of an attempt to the outbox. `is_request`: it stands for the request."""
        claimed = delivery.claimed
        number = claimed.attempts - claimed.uncounted_attempts + 1
        schedule, refusals = delivery.endpoint.retry_schedule, delivery.endpoint.refusals
        decision = decide(attempted, number, self._random, schedule, refusals)
        if claimed.early_s and decision.state == "pending":  # it keeps its schedule
            decision = decision._replace(delay_s=max(claimed.early_s, decision.retry_after_s or 0))
        measured = self._latencies_ms([delivery]) if decision.state == "delivered" else {}
        latency_ms = next(iter(measured), None)
        self._outbox.add(DeliveryResult(claimed, decision, attempt, is_request, latency_ms))
        return decision

    def _latencies_ms(self, deliveries: Iterable[BatchDelivery]) -> Mapping[float, int]:
        """Return and record the times since the append of delivered events, each with the number of
        events. Those that were sent again have none.
        """
        now_us = self._clock.now_us()
        appended = Counter(
            0 if each.body is None or each.is_repeat else each.body.facts.appended_at_us
            for each in deliveries
        )
        del appended[0]  # a gap notice, or sent again
        found: Counter[float] = Counter()
        for appended_at_us, count in appended.items():
            latency_us = max(now_us - appended_at_us, 0)
            metrics.CALLBACK_LATENCY.observe_times(latency_us / 1e6, count)
            found[latency_us / 1e3] += count
        return found

    async def _deliver_batches(self, run: BatchRun) -> None:
        """Post deliveries in batches, one after the other, until a request fails."""
        try:
            while run.left and run.requests_left > 0 and not self._is_stopped(run.left[0]):
                for delivery in run.take(self._is_unpostable):
                    if self._is_unsent(delivery):
                        self._end(delivery)
                    else:  # nothing is posted either
                        posted = await self._sender.send(delivery)
                        run.close(delivery, self._record(delivery, *posted[:2]))
                batch = run.next(self._is_unpostable)
                if batch:
                    run.requests_left -= 1
                    if not await self._post_batch(batch, run):
                        break
        finally:
            for unposted in run.unposted:
                self._outbox.give_back(unposted.prepared().claimed)
            for lane, token in run.lanes:
                self._outbox.leave(lane, token)
            self._slots.release(run.endpoint_id, run.bytes_held)
            self._on_slot_free()

    async def _post_batch(self, batch: list[BatchEvent], run: BatchRun) -> bool:
        """Post a batch and record the results; return False if the request failed."""
        with self._request(run.endpoint_id) as request:
            try:
                posted, failures = await self._sender.send_batch(
                    run.target, run.size, batch, ordered=run.ordered
                )
                request.outcome = posted.outcome
            except asyncio.CancelledError:
                run.return_all(batch)
                raise
        self._record_batch(batch, posted, failures, run)
        return posted.outcome.code == "delivered"

    def _record_batch(
        self,
        batch: list[BatchEvent],
        posted: PostResult,
        failures: Mapping[str, AttemptOutcome],
        run: BatchRun,
    ) -> None:
        """Pass the results of a batch's events to the outbox: those that were delivered together,
        the others one by one.
        """
        is_delivered = posted.outcome.code == "delivered"
        delivered = batch if is_delivered and not failures else []
        for number, event in enumerate([] if delivered else batch):
            if run.is_closed(event.delivery):
                run.return_all([event])
                continue
            outcome = failures.get(event.message, posted.outcome)
            if outcome.code == "delivered":
                delivered.append(event)
                continue
            record = attempt_of_event(posted.attempt, outcome, number, batch)
            single = event.delivery.prepared()
            decision = self._record(single, outcome, record, is_request=number == 0)
            run.close(event.delivery, decision)
        if delivered:
            latencies_ms = self._latencies_ms(event.delivery for event in delivered)
            self._outbox.add_delivered(delivered_batch(delivered, posted.attempt, latencies_ms))


class _Request:
    """The outcome of a request, `internal` until it is known."""

    def __init__(self) -> None:
        self.outcome = AttemptOutcome("internal")
