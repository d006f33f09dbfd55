"""Traces: each API call of a zone that has them on becomes an event of its stream
`eventhub.traces` (OIF-31). Plain module.

A call costs a few microseconds more where no zone has traces on, and never waits for the event:
events wait in a bounded queue and are appended in batches, at most so many a second. What has no
room in it is dropped and counted, in a metric and in an event.

Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from time import perf_counter
from typing import Any, NamedTuple

from eventhub.access.grants import TRACES
from eventhub.base import caller, limits, metrics, traced_call
from eventhub.base.caller import Caller
from eventhub.base.errors import EventHubError
from eventhub.base.event_loop import run_forever
from eventhub.base.logs import ThrottledLog, get_logger
from eventhub.base.traced_call import TracedCall
from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, HUB_SOURCE, Event
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import find_stream
from eventhub.eventlog.stored import StoredEvent, StreamInfo
from eventhub.eventlog.system import SYSTEM_DOMAIN
from eventhub.eventlog.system_follower import SystemFollower
from eventhub.http.messages import Message, Receive, Scope, Send
from eventhub.http.request_ids import AsgiApp
from eventhub.postgresql.connections import reading
from eventhub.postgresql.rows import fetch_values

throttled = ThrottledLog(get_logger(__name__))
_ZONES = "SELECT id FROM zones WHERE traces AND deleted_at IS NULL"
_CHANGES = ("zone.monitoring.changed", "zone.deleted", "stream.deleted")
_OWN = f"/v1/streams/{TRACES}"  # to read traces makes none, or a reader would never come to an end
_WEBSOCKET = ("websocket.accept", "websocket.http.response.start")


class CallTrace(NamedTuple):
    """A call that has ended."""

    stream: StreamInfo
    method: str
    route: str
    status: int
    duration_ms: float
    caller: Caller  # with the id of the request

    def draft(self) -> Draft:
        actor = self.caller._replace(address="", request_id="").json()
        attributes = {
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "duration_ms": self.duration_ms,
            "request_id": self.caller.request_id,
            "actor": actor,
        }
        return _draft(self.stream, "call", attributes)


class Tracer:
    """The traces of one process."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._streams: dict[int, StreamInfo] = {}  # of zones with traces, by zone
        self._waiting: deque[CallTrace] = deque()
        self._dropped: Counter[StreamInfo] = Counter()  # not announced yet
        self._some = asyncio.Event()

    @property
    def is_on(self) -> bool:
        """Whether any zone has traces on."""
        return bool(self._streams)

    def record(self, call: TracedCall, scope: Scope, status: int, duration_s: float) -> None:
        """Queue the event of a call that has ended, if its zone has traces on."""
        stream = None if call.zone_id is None else self._streams.get(call.zone_id)
        if stream is None or scope["path"].startswith(_OWN):
            return
        if len(self._waiting) >= limits.TRACES_WAITING_MAX:
            self._drop(stream, 1, "overload")
            return
        request_id = caller.current().request_id
        who = call.caller._replace(request_id=request_id)
        duration_ms = round(duration_s * 1000, 3)
        method = scope.get("method", "GET")
        self._waiting.append(CallTrace(stream, method, call.route, status, duration_ms, who))
        self._some.set()

    async def run(self) -> None:
        """Follow which zones have traces on, and append events, until cancelled."""
        following = SystemFollower(self._log, "traces", self._on_system)
        async with asyncio.TaskGroup() as group:
            group.create_task(run_forever("traced zones", following.run))
            group.create_task(run_forever("traces", self._write))

    async def _on_system(self, stored: StoredEvent | None) -> None:
        if stored is not None and stored.event.type not in _CHANGES:
            return
        async with reading(self._log.lookups) as connection:
            zones = await fetch_values(connection, _ZONES)
            found = {zone: await find_stream(connection, zone, TRACES) for zone in zones}
        self._streams = {zone: stream for zone, stream in found.items() if stream is not None}

    async def _write(self) -> None:
        while True:
            await self._some.wait()
            await asyncio.sleep(limits.TRACES_INTERVAL_S)
            self._some.clear()
            count = min(len(self._waiting), limits.TRACES_AT_ONCE)
            taken = sorted((self._waiting.popleft() for _ in range(count)), key=_stream_id)
            if self._waiting:
                self._some.set()
            for _, of_stream in groupby(taken, key=_stream_id):
                await self._append([*of_stream])

    async def _append(self, traces: Sequence[CallTrace]) -> None:
        stream = traces[0].stream
        drafts = [trace.draft() for trace in traces]
        dropped = self._dropped.pop(stream, 0)
        if dropped:
            drafts.insert(0, _draft(stream, "calls.dropped", {"count": dropped}))
        try:
            await self._log.append(drafts, stream)
        except EventHubError as error:
            self._dropped[stream] += dropped  # counted before
            self._drop(stream, len(traces), "refused")
            throttled.info("traces_dropped", stream=stream.id, reason=error.code)
            return
        metrics.TRACES.inc(len(traces))

    def _drop(self, stream: StreamInfo, count: int, reason: str) -> None:
        self._dropped[stream] += count
        metrics.TRACES_DROPPED.labels(reason=reason).inc(count)


_stream_id = attrgetter("stream.id")


def with_traces(app: AsgiApp, tracer: Tracer) -> AsgiApp:
    """Wrap an application of HTTP or of a websocket. A request is recorded when its response is
    complete, a websocket when its handshake is answered.
    """

    async def traced(scope: Scope, receive: Receive, send: Send) -> None:
        if not tracer.is_on:
            await app(scope, receive, send)
            return
        call, started_s, status = traced_call.begin(), perf_counter(), 0

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] in _WEBSOCKET:
                traced_call.note_route(scope["path"])
                answered = message.get("status", 101)
                tracer.record(call, scope, answered, perf_counter() - started_s)
            await send(message)

        try:
            await app(scope, receive, send_noting)
        finally:
            if status:
                tracer.record(call, scope, status, perf_counter() - started_s)

    return traced


def _draft(stream: StreamInfo, type: str, attributes: dict[str, Any]) -> Draft:
    event = Event(SYSTEM_DOMAIN, type, attributes, source=HUB_SOURCE, node="hub")
    return Draft(stream.id, DEFAULT_MASK, protobuf_codec.encode(event))
