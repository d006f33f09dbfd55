"""Deliveries of an endpoint while they are posted in batches, one batch after the other, and the
results of a batch's events. Plain module.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from delivery.callbacks.batches import BatchSize, count_for_batch, event_results
from delivery.callbacks.claims import CallbackEndpoint, LaneKey
from delivery.callbacks.post import CallbackTarget, PostResult
from delivery.callbacks.prepared import GroupedDelivery, PreparedDelivery
from delivery.callbacks.results import AttemptRecord, DeliveredBatch, DeliveryPart
from delivery.callbacks.retry import AttemptOutcome, RetryDecision

BatchDelivery = PreparedDelivery | GroupedDelivery


class BatchEvent(NamedTuple):
    """An event of a batch: its delivery with its id, and its JSON."""

    delivery: BatchDelivery
    message: str
    element: bytes

    @property
    def attempts(self) -> int:
        return self.delivery.attempts


class BatchRun:
    """Deliveries that share a slot; `ordered`: of whole lanes, each in its order. The first failure
    in a lane closes it: later deliveries of the lane are not posted, and one in the same batch
    counts as not posted, also if the answer says otherwise, so that it follows the failed one.
    """

    def __init__(
        self, deliveries: Sequence[BatchDelivery], size: BatchSize, *, ordered: bool
    ) -> None:
        self.left = [each for each in deliveries if not each.is_deferred]
        self.requests_left = _requests_max(deliveries[0].endpoint, len(deliveries), size)
        self.bytes_held = bytes_of(deliveries)
        self.size = size
        self.target: CallbackTarget = deliveries[0].target
        self.endpoint_id = deliveries[0].part.endpoint_id
        self.lanes = {_held(each) for each in deliveries} if ordered else set()
        self.ordered = ordered
        self._closed: set[LaneKey] = set()
        self._returned = [each for each in deliveries if each.is_deferred]
        self._waiting = False  # some that were chosen wait for others of their lane

    @property
    def unposted(self) -> list[BatchDelivery]:
        """The deliveries whose claims are to be given back."""
        return self._returned + self.left

    def take(self, chosen: Callable[[BatchDelivery], bool]) -> list[PreparedDelivery]:
        """Remove and return the first of the deliveries that are chosen and not in closed lanes.

        In a lane, one that is chosen has to wait for those before it.
        """
        self._waiting = any(map(chosen, self.left))
        if not self._waiting:
            return []
        taken: list[PreparedDelivery] = []
        left: list[BatchDelivery] = []
        waits = set(self._closed)
        for each in self.left:
            lane = _held(each)[0] if self.ordered else None
            if chosen(each) and lane not in waits:
                taken.append(each.prepared())
            else:
                left.append(each)
            if lane is not None:
                waits.add(lane)
        self.left = left
        return taken

    def next(self, is_unpostable: Callable[[BatchDelivery], bool]) -> list[BatchEvent]:
        """Remove and return the events of the next batch; none if all lanes are closed. It ends
        before one that cannot be sent, which is taken once it is the first of its lane.
        """
        if self._closed:
            self._returned += [each for each in self.left if self.is_closed(each)]
            self.left = [each for each in self.left if not self.is_closed(each)]
        readable: list[BatchEvent] = []
        for each in self.left[: self.size.events_max]:
            if each.body is None or (self._waiting and is_unpostable(each)):
                break
            message = each.message
            readable.append(BatchEvent(each, message, each.element(each.body, message)))
        count = count_for_batch(readable, self.size) if readable else 0
        self.left = self.left[count:]
        return readable[:count]

    def close(self, delivery: BatchDelivery, decision: RetryDecision) -> None:
        """Close the lane of a delivery that will be attempted again."""
        if self.ordered and decision.state == "pending":
            self._closed.add(_held(delivery)[0])

    def is_closed(self, delivery: BatchDelivery) -> bool:
        return bool(self._closed) and _held(delivery)[0] in self._closed

    def return_all(self, events: Iterable[BatchEvent]) -> None:
        """Return deliveries that count as not posted."""
        self._returned += [event.delivery for event in events]


def _requests_max(endpoint: CallbackEndpoint, deliveries: int, size: BatchSize) -> float:
    """Return how many requests may be made: as many as were taken of an endpoint's rate limit.

    The rest is claimed again. Batches are smaller than `events_max` if their events are large, or
    have failed before.
    """
    return max(1, deliveries // size.events_max) if endpoint.has_rate_limit else math.inf


def bytes_of(deliveries: Iterable[BatchDelivery]) -> int:
    """Return the size of the bodies of deliveries, in bytes."""
    return sum([each.body.size for each in deliveries if each.body is not None])


def _held(delivery: BatchDelivery) -> tuple[LaneKey, str]:
    """Return the lane of an ordered delivery, and the token under which it is held."""
    claimed = delivery.prepared().claimed
    return claimed.lane, claimed.token


def read_answer(
    posted: PostResult, batch: Sequence[BatchEvent]
) -> tuple[PostResult, Mapping[str, AttemptOutcome]]:
    """Return the result of a batch and the failures of its events, by the ids of their deliveries.
    If the answer cannot be read, it may name failed events: the request has failed.
    """
    if posted.outcome.code != "delivered":
        return posted, {}
    try:
        return posted, event_results(posted.answer, (event.message for event in batch))
    except ValueError:
        return posted._replace(outcome=AttemptOutcome("protocol", posted.outcome.status)), {}


def attempt_of_event(
    attempt: AttemptRecord, outcome: AttemptOutcome, number: int, batch: Sequence[BatchEvent]
) -> AttemptRecord:
    """Return the record of an event's attempt. Only the first event of a batch has the headers and
    the response; the others have the batch's size and the status.
    """
    response = outcome.detail or attempt.response
    own = attempt._replace(outcome=outcome.code, status=outcome.status, response=response)
    if number == 0:
        return own
    status = response.partition("\n")[0]
    request = f"event {number + 1} of {len(batch)}, in the batch of {batch[0].message}"
    return own._replace(request=request, response=status)


def delivered_batch(
    events: Iterable[BatchEvent], attempt: AttemptRecord, latencies_ms: Mapping[float, int]
) -> DeliveredBatch:
    """Return the result of events that were delivered together."""
    parts: dict[DeliveryPart, list[int]] = {}
    for event in events:
        parts.setdefault(event.delivery.part, []).append(event.delivery.sequence)
    [endpoint_id, *_] = {part.endpoint_id for part in parts}
    return DeliveredBatch(endpoint_id, parts, attempt, latencies_ms)
