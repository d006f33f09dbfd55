"""Transient streams: each is a bounded ring in Redis, shared by all processes, without events in
PostgreSQL (EMC-35). SQL module.

The contract is that of the log: sequences without holes, cursors, gaps. One script numbers, adds
and trims. The ring's UUID is bound to the run of Redis and to the history of the database: after a
restart of Redis, a restore of the database or the loss of the ring there is a new segment, from
which every reader learns of the loss.

Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import psycopg
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventhub.base import limits
from eventhub.base.errors import (
    DatabaseUnavailable,
    Gone,
    Overloaded,
    ProducerWindow,
    SegmentMismatch,
)
from eventhub.base.event_loop import pause_together_s, run_forever, wait_until_set
from eventhub.eventlog.append import SQL
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.errors import TransientUnavailable
from eventhub.eventlog.read import AtTime, Position, ReadLimits, Start
from eventhub.eventlog.ring import Ring, Rings
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo
from eventhub.eventlog.transient_history import TransientHistory
from eventhub.eventlog.transient_requests import (
    WaitingAppend,
    answer_group,
    answer_one,
    evaluated,
    grouped,
)
from eventhub.eventlog.transient_scripts import (
    AWAY,
    CHANNEL,
    NO_REDIS,
    READ,
    keys,
)
from eventhub.postgresql.rows import scalars


class Transient:
    """The transient streams of one process. Without a URL, calls raise TransientUnavailable.
    `read_history` reads the history of the database, "" if the server was started since it was
    proved; it raises DatabaseUnavailable.
    """

    def __init__(
        self, url: str, shares: set[Ring], read_history: Callable[[], Awaitable[str]]
    ) -> None:
        self._redis = _client(url) if url else None
        self.history = TransientHistory(read_history)
        self.rings = Rings(shares, self._head, self._poll_soon)
        self._received: set[int] = set()  # streams with announced events that are not read yet
        self._some_received = asyncio.Event()
        self._poll_at_s = 0.0
        self._waiting: deque[WaitingAppend] = deque()
        self._some_waiting = asyncio.Event()

    async def close(self) -> None:
        if self._redis is not None:
            await self._redis.aclose()

    async def append(self, stream: StreamInfo, drafts: Sequence[Draft]) -> list[Appended]:
        """Store one request's drafts, all or none.

        Raises ProducerWindow, TransientUnavailable, DatabaseUnavailable (nothing was stored),
        OutcomeUnknown, Overloaded.
        """
        settings: list[Any] = [
            stream.retain_events or limits.TRANSIENT_EVENTS_DEFAULT,
            stream.retain_bytes or limits.TRANSIENT_BYTES_DEFAULT,
            limits.PRODUCER_WINDOW,
            limits.TRANSIENT_PRODUCER_S,
            f"{CHANNEL}{stream.id}",
        ]
        if self._redis is None:
            raise TransientUnavailable(NO_REDIS)
        found = await self.history.call(
            lambda terms: self._submit(stream.id, [*terms, *settings], drafts)
        )
        segment, at_us, given, *last = found
        if not segment:
            raise ProducerWindow(index=at_us, field="id.sequence", highest=int(given))
        head = Cursor(segment.decode(), *last)
        appended = [
            Appended(stream.id, head.segment, abs(n), n < 0, head if n < 0 else None) for n in given
        ]
        self._push(stream.id, _stored(drafts, appended, int(at_us)))
        return appended

    async def _submit(self, stream_id: int, terms: list[Any], drafts: Sequence[Draft]) -> Any:
        """Return the script's answer to one request. Waiting requests share a round trip."""
        if len(self._waiting) >= limits.TRANSIENT_WAITING_MAX:
            raise Overloaded
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(WaitingAppend(stream_id, terms, drafts, answer))
        self._some_waiting.set()
        return await answer

    async def _send(self, client: "redis.asyncio.Redis") -> None:
        """Append waiting requests, one round trip at a time."""
        try:
            while True:
                await self._some_waiting.wait()
                count = min(len(self._waiting), limits.TRANSIENT_PIPELINE_MAX)
                taken = [self._waiting.popleft() for _ in range(count)]
                if not self._waiting:
                    self._some_waiting.clear()
                groups = grouped(taken)
                for group, found in zip(groups, await evaluated(client, groups), strict=True):
                    answer_group(group, found)
        finally:
            while self._waiting:
                answer_one(self._waiting.popleft(), TransientUnavailable())

    async def _head(self, stream_id: int) -> Cursor:
        return (await self._read(stream_id, 1, 0))[0]

    async def resolve(self, stream_id: int, start: Start) -> Position:
        """Return the present position of a start. A transient stream restarts with Redis, so `boot`
        is the oldest event. Raises SegmentMismatch, Gone, TransientUnavailable.
        """
        head, first, events = await self._read(stream_id, 1, 0)
        before = Cursor(head.segment, first - 1)
        if start == "now":
            return Position(head, head.sequence)
        if isinstance(start, AtTime):
            _, _, events = await self._read(stream_id, first, head.sequence)
            earlier = [stored for stored in events if stored.appended_at_us < start.time_us]
            return Position(earlier[-1].cursor if earlier else before, head.sequence)
        if not isinstance(start, Cursor):
            return Position(before, head.sequence)
        _require_held(start, head, first)
        return Position(start, head.sequence)

    def reader(
        self, stream_id: int
    ) -> Callable[[Cursor, ReadLimits], Awaitable[list[StoredEvent]]]:
        """Return a function that reads pages after a cursor, like Log.reader."""

        async def read_page(cursor: Cursor, page: ReadLimits) -> list[StoredEvent]:
            after = cursor.sequence
            head, first, events = await self._read(stream_id, after + 1, after + page.events_max)
            _require_held(cursor, head, first)
            return events

        return read_page

    async def run(self) -> None:
        """Keep the watched rings full until cancelled, also while Redis is unreachable."""
        if self._redis is None:
            return
        listen = partial(self._listen, self._redis)
        async with asyncio.TaskGroup() as group:
            group.create_task(run_forever("transient listen", listen))
            group.create_task(run_forever("transient send", partial(self._send, self._redis)))
            group.create_task(run_forever("transient keep full", self._keep_full))

    async def _listen(self, client: "redis.asyncio.Redis") -> None:
        away = False
        while True:
            try:
                async with client.pubsub(ignore_subscribe_messages=True) as published:
                    await published.psubscribe(f"{CHANNEL}*")
                    if away:
                        self._distrust()
                    async for message in published.listen():
                        self._receive(int(message["channel"].rpartition(b":")[2]))
            except AWAY:
                away = True
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _keep_full(self) -> None:
        """Read announced events at once, and poll all watched rings every 250 ms."""
        clock = asyncio.get_running_loop().time
        while True:
            self._some_received.clear()
            received, self._received = self._received, set()
            if clock() >= self._poll_at_s:
                watched = {stream_id for stream_id, _ in self.rings.all()}
                pause_s = limits.HEAD_POLL_INTERVAL_S if watched else limits.HEAD_REST_INTERVAL_S
                self._poll_at_s = clock() + pause_together_s(pause_s)
                received |= watched
            try:
                for stream_id in received:
                    await self._fill(stream_id)
            except (TransientUnavailable, DatabaseUnavailable):
                self._distrust()
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            await wait_until_set(self._some_received, self._poll_at_s - clock())

    def _poll_soon(self) -> None:
        self._poll_at_s = 0.0
        self._some_received.set()

    async def _fill(self, stream_id: int) -> None:
        while (ring := self.rings.get(stream_id)) is not None:
            started_s = asyncio.get_running_loop().time()
            life = ring.life
            start = ring.next
            head, first, events = await self._read(stream_id, start, start + limits.READ_EVENTS_MAX)
            if ring.life != life:
                continue
            if not ring.trusted or head.segment != ring.head.segment or start < first:
                ring.distrust()
                ring.skip_to(head)
                return
            ring.push(events)
            if ring.next > head.sequence:
                ring.confirmed_s = started_s
                return

    def _push(self, stream_id: int, rows: list[StoredEvent]) -> None:
        """Add rows that this process has just appended to their ring."""
        ring = self.rings.get(stream_id)
        if ring is None or not rows:
            return
        if rows[0].segment != ring.head.segment or not ring.push(rows):
            self._receive(stream_id)

    def _receive(self, stream_id: int) -> None:
        if self.rings.get(stream_id) is not None:
            self._received.add(stream_id)
            self._some_received.set()

    def _distrust(self) -> None:
        self.rings.distrust()
        for stream_id, _ in self.rings.all():
            self._receive(stream_id)

    async def _read(
        self, stream_id: int, first: int, last: int
    ) -> tuple[Cursor, int, list[StoredEvent]]:
        """Return the head, the first readable sequence, and the events of a range. Raises
        TransientUnavailable.
        """
        segment, oldest, head, rows = await self.history.call(
            lambda terms: self._script(READ, stream_id, [*terms, first, last])
        )
        name = segment.decode()
        events = [
            StoredEvent(name, int(key.partition(b"-")[0]), int(row[1]), int(row[5]), row[3])
            for key, row in rows
        ]
        return Cursor(name, int(head)), int(oldest), events

    async def _script(self, script: str, stream_id: int, values: list[Any]) -> Any:
        if self._redis is None:
            raise TransientUnavailable(NO_REDIS)
        try:
            run = self._redis.register_script(script)
            async with asyncio.timeout(limits.TRANSIENT_TIMEOUT_S_MAX):
                return await run(keys(stream_id), [str(uuid.uuid4()), *values])
        except AWAY as error:
            raise TransientUnavailable() from error


def positions(
    connection: psycopg.Connection[Any], url: str, stream_ids: Sequence[int]
) -> dict[int, tuple[str, int, int]]:
    """Return for each transient stream the segment's UUID, the first readable and the last
    sequence. Raises TransientUnavailable.
    """
    history = scalars(connection).execute(SQL["history"]).fetchone()
    if not url or history is None:
        raise TransientUnavailable(None if url else NO_REDIS)
    try:
        with redis.Redis.from_url(url, socket_timeout=limits.TRANSIENT_TIMEOUT_S_MAX) as client:
            run = client.register_script(READ)
            values = (history, 1, 1, 0)
            found = {one: run(keys(one), [str(uuid.uuid4()), *values]) for one in stream_ids}
    except AWAY as error:
        raise TransientUnavailable() from error
    return {one: (row[0].decode(), int(row[1]), int(row[2])) for one, row in found.items()}


def erase(url: str, stream_id: int) -> None:
    """Remove a deleted stream. Raises TransientUnavailable."""
    if not url:
        return  # nothing was stored, or it ended with the Redis that this hub no longer has
    try:
        with redis.Redis.from_url(url, socket_timeout=limits.TRANSIENT_TIMEOUT_S_MAX) as client:
            client.delete(*keys(stream_id))
    except AWAY as error:
        raise TransientUnavailable() from error


def _client(url: str) -> "redis.asyncio.Redis":
    """Connect without retries by the library: a script that may have run must not run twice."""
    return redis.asyncio.Redis.from_url(
        url,
        socket_timeout=None,
        socket_connect_timeout=limits.TRANSIENT_TIMEOUT_S_MAX,
        retry=Retry(NoBackoff(), 0),
    )


def _stored(drafts: Sequence[Draft], appended: list[Appended], at_us: int) -> list[StoredEvent]:
    return [
        StoredEvent(one.segment, one.sequence, draft.mask, at_us, draft.payload)
        for draft, one in zip(drafts, appended, strict=True)
        if not one.duplicate
    ]


def _require_held(cursor: Cursor, head: Cursor, first: int) -> None:
    if cursor.segment != head.segment or cursor.sequence > head.sequence:
        current = {"segment": head.segment, "first": first, "last": head.sequence}
        raise SegmentMismatch(current=current)
    if cursor.sequence + 1 < first:
        raise Gone(
            first_available={"segment": head.segment, "sequence": first},
            missed={"first": cursor.sequence + 1, "last": first - 1},
            resume={"segment": head.segment, "sequence": first - 1},
        )
