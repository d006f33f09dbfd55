"""How events reach an endpoint of any kind: they are posted to a URL, or stored in a sink. All else
about a delivery is the same for all kinds. SQL module.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from delivery.callbacks.batch_run import BatchEvent, read_answer
from delivery.callbacks.batches import BatchSize, batch_content, batch_id
from delivery.callbacks.body import RequestContent
from delivery.callbacks.client import HttpClient
from delivery.callbacks.post import CallbackTarget, PostResult, not_sent, outcome_of_error, post
from delivery.callbacks.post_with_token import post_with_token
from delivery.callbacks.prepared import PreparedDelivery
from delivery.callbacks.recorded import recorded
from delivery.callbacks.results import AttemptRecord
from delivery.callbacks.retry import AttemptOutcome
from delivery.callbacks.sink_store import SinkStore, SinkTarget
from delivery.callbacks.tokens import TokenSource
from eventhub.base import limits, metrics
from registrations.sinks.kind import SinkAnswer, SinkEvent, SinkFault

Failures = Mapping[str, AttemptOutcome]  # of single events of a batch, by the ids of deliveries


class DeliverySender:
    """What a worker sends events with. Every method makes one attempt, returns how it ended, and
    raises nothing.
    """

    def __init__(self, client: HttpClient, tokens: TokenSource, sinks: SinkStore) -> None:
        self._client = client
        self._tokens = tokens
        self._sinks = sinks

    async def send(self, delivery: PreparedDelivery) -> PostResult:
        """Send a single event."""
        target, body, message = delivery.target, delivery.body, delivery.message
        if body is None:
            return not_sent(target, "unreadable", "the event cannot be read at present")
        if target.sink is not None:
            event = SinkEvent(message, delivery.element(body, message), delivery.is_repeat)
            return (await self._store(target, target.sink, [event], apart=False))[0]
        return await self._post(target, message, delivery.content(body))

    async def send_batch(
        self,
        target: CallbackTarget,
        size: BatchSize,
        batch: Sequence[BatchEvent],
        *,
        ordered: bool,
    ) -> tuple[PostResult, Failures]:
        """Send events together. The failures are those that the answer names, or that a sink
        refuses; of ordered events it stores all or none.
        """
        if target.sink is not None:
            events = [
                SinkEvent(event.message, event.element, event.delivery.is_repeat) for event in batch
            ]
            return await self._store(target, target.sink, events, apart=not ordered)
        message = batch_id([event.message for event in batch])
        posted = await self._post(target, message, batch_content(batch, size))
        return read_answer(posted, batch)

    async def _post(
        self, target: CallbackTarget, message: str, content: RequestContent
    ) -> PostResult:
        """Send a request, with an access token if the endpoint needs one."""
        if target.oauth2 is not None:
            return await post_with_token(self._client, self._tokens, target, message, content)
        return await post(self._client, target, message, content)

    async def _store(
        self, target: CallbackTarget, sink: SinkTarget, events: Sequence[SinkEvent], *, apart: bool
    ) -> tuple[PostResult, Failures]:
        """Store events; `apart`: without those that the sink refuses."""
        started_s = time.monotonic()
        request = f"{sink.kind.name}: {len(events)} events, the first is {events[0].id}"
        refused: dict[str, SinkFault] = {}
        try:
            answer = await self._store_accepted(sink, events, refused if apart else None)
            outcome = AttemptOutcome("delivered", answer.status)
            request, response = answer.request, answer.response
        except SinkFault as fault:
            outcome = AttemptOutcome(fault.code, fault.status, fault.retry_after_s)
            refused, response = {}, fault.detail
        except Exception as error:
            outcome = AttemptOutcome(outcome_of_error(error))
            refused, response = {}, type(error).__name__
        failures = {
            message: AttemptOutcome(one.code, of_event=True, detail=_shown(one.detail, target))
            for message, one in refused.items()
        }
        codes = Counter(failures.get(event.id, outcome).code for event in events)
        for code, count in codes.items():
            metrics.SINK_EVENTS.labels(sink.kind.name, code).inc(count)
        duration_ms = int((time.monotonic() - started_s) * 1_000)
        attempt = AttemptRecord(
            *(outcome.code, outcome.status, started_s, duration_ms),
            *(target.url, request, _shown(response, target)),
        )
        return PostResult(outcome, attempt), failures

    async def _store_accepted(
        self, sink: SinkTarget, events: Sequence[SinkEvent], refused: dict[str, SinkFault] | None
    ) -> SinkAnswer:
        """Store the events that the sink does not refuse; note the others in `refused`; None: store
        all or none. Raises SinkFault, also if it refuses all or too many, and TimeoutError.
        """
        until_s = time.monotonic() + sink.timeout_s
        try:
            return await self._sinks.store(sink, events)
        except SinkFault as fault:
            if refused is None or not fault.of_events or len(events) == 1:
                raise
            async with asyncio.timeout(until_s - time.monotonic()):
                await self._store_halves(sink, events, refused)
            if len(refused) == len(events):
                raise
        stored = f"{len(events) - len(refused)} stored, {len(refused)} refused"
        return SinkAnswer(f"{len(events)} events, in parts", stored)

    async def _store_halves(
        self, sink: SinkTarget, events: Sequence[SinkEvent], refused: dict[str, SinkFault]
    ) -> None:
        """Store events of which the sink refused some, and note these in `refused`. Raises
        SinkFault, also if there are too many.
        """
        middle = len(events) // 2
        for part in (events[:middle], events[middle:]):
            try:
                await self._sinks.store(sink, part)
            except SinkFault as fault:
                if not fault.of_events or len(refused) >= limits.SINK_REFUSED_MAX:
                    raise
                if len(part) > 1:
                    await self._store_halves(sink, part, refused)
                else:
                    refused[part[0].id] = fault


def _shown(text: str, target: CallbackTarget) -> str:
    return recorded(text[: limits.CALLBACK_ANSWER_CHARS_STORED_MAX], target.secrets)
