"""The queue of traces: bounded, and what it drops is counted and announced."""

import asyncio
from collections.abc import Sequence
from typing import Any

from eventhub.base import limits, metrics
from eventhub.base.caller import Caller
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.traced_call import TracedCall
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.stored import StreamInfo
from eventhub.http.tracing import Tracer, with_traces

STREAM = StreamInfo(7, 3, "eventhub.traces", "async")
SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/v1/streams", "headers": []}


class RecordingLog:
    """The appended drafts; `error` refuses the next append."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.error: Exception | None = None
        self.called = asyncio.Event()

    async def append(self, drafts: Sequence[Draft], stream: StreamInfo) -> None:
        assert stream is STREAM
        error, self.error = self.error, None
        self.called.set()
        if error is not None:
            raise error
        self.drafts += drafts

    def types(self) -> list[tuple[str, int | None]]:
        found = [decode(draft.payload) for draft in self.drafts]
        return [(event.type, event.attributes.get("count")) for event in found]


def tracer_of(log: RecordingLog) -> Tracer:
    tracer = Tracer(log)  # type: ignore[arg-type]
    tracer._streams = {3: STREAM}
    return tracer


def call(zone_id: int | None = 3) -> TracedCall:
    made = TracedCall()
    made.zone_id, made.route, made.caller = zone_id, "/v1/streams", Caller("key", client="till")
    return made


def dropped(reason: str) -> float:
    return metrics.TRACES_DROPPED.labels(reason=reason)._value.get()


async def write(tracer: Tracer, log: RecordingLog) -> None:
    """Let the tracer append once."""
    log.called.clear()
    writing = asyncio.create_task(tracer._write())
    async with asyncio.timeout(60):
        await log.called.wait()
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)


async def test_what_has_no_room_is_dropped_counted_and_announced(monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "TRACES_WAITING_MAX", 3)
    log, before = RecordingLog(), dropped("overload")
    tracer = tracer_of(log)
    for _ in range(5):
        tracer.record(call(), SCOPE, 200, 0.001)
    assert dropped("overload") - before == 2
    await write(tracer, log)
    assert log.types() == [("calls.dropped", 2), ("call", None), ("call", None), ("call", None)]


async def test_traces_that_the_log_refuses_are_counted_and_announced_with_the_next_ones() -> None:
    log, before = RecordingLog(), dropped("refused")
    log.error = DatabaseUnavailable()
    tracer = tracer_of(log)
    tracer.record(call(), SCOPE, 200, 0.001)
    await write(tracer, log)
    tracer.record(call(), SCOPE, 200, 0.001)
    await write(tracer, log)
    assert log.types() == [("calls.dropped", 1), ("call", None)]
    assert dropped("refused") - before == 1


async def test_calls_of_other_zones_and_of_unknown_callers_and_of_traces_are_not_traced() -> None:
    log = RecordingLog()
    tracer = tracer_of(log)
    tracer.record(call(None), SCOPE, 401, 0.001)
    tracer.record(call(4), SCOPE, 200, 0.001)
    own = {**SCOPE, "path": "/v1/streams/eventhub.traces/events"}
    tracer.record(call(), own, 200, 0.001)
    assert not tracer._waiting


async def test_without_a_traced_zone_the_application_is_called_as_it_is() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(send)

    async def nothing(*_: Any) -> Any:
        return None

    await with_traces(app, Tracer(RecordingLog()))(SCOPE, nothing, nothing)  # type: ignore[arg-type]
    assert seen == [nothing]
