"""Transient streams: a bounded ring in Redis for each, shared by all processes, and nothing in
PostgreSQL (EMC-35). The same contract as the log's: numbers without holes, cursors, gaps. One
script numbers, adds and trims. The ring's UUID lives with the run of Redis: another run, or a
missing ring, is another segment, and every reader can tell. Concurrency contract: one event loop;
`run` is one task. SQL module.
"""

import asyncio
import re
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from eventhub.base import limits
from eventhub.base.background import run_forever
from eventhub.base.errors import (
    EventHubError,
    Gone,
    OutcomeUnknown,
    Overloaded,
    ProducerWindow,
    SegmentMismatch,
)
from eventhub.base.waiting import set_within
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.errors import TransientUnavailable
from eventhub.eventlog.read import AtTime, Position, ReadLimits, Start
from eventhub.eventlog.ring import Ring
from eventhub.eventlog.rings import Rings
from eventhub.eventlog.stored import Cursor, StoredEvent, StreamInfo

_LUA = Path(__file__).parent / "lua"
_BEGIN = (_LUA / "begin.lua").read_text()
_APPEND = _BEGIN + (_LUA / "append.lua").read_text()
_READ = _BEGIN + (_LUA / "read.lua").read_text()
_CHANNEL = "eventhub:transient:"
_NO_REDIS = "This hub is run without Redis (REDIS_URL)."
_AWAY = (redis.RedisError, OSError, TimeoutError)
# Why Redis refuses to write; within a script the word stands somewhere in the error's text.
_REFUSED = re.compile(
    r"\b(OOM|LOADING|MISCONF|READONLY|NOREPLICAS|MASTERDOWN|BUSY|NOPERM|NOAUTH|CLUSTERDOWN|MOVED"
    r"|ASK|TRYAGAIN)\b"
)


class _WaitingAppend(NamedTuple):
    stream_id: int
    values: list[Any]
    answer: "asyncio.Future[Any]"


class Transient:
    """The transient streams of one process. Without a URL every call is TransientUnavailable."""

    def __init__(self, url: str, shares: set[Ring]) -> None:
        self._redis = _client(url) if url else None
        self.rings = Rings(shares, self._head, self._look_soon)
        self._heard: set[int] = set()
        self._some_heard = asyncio.Event()
        self._look_at_s = 0.0
        self._waiting: deque[_WaitingAppend] = deque()
        self._some_waiting = asyncio.Event()

    async def close(self) -> None:
        if self._redis is not None:
            await self._redis.aclose()

    async def append(self, stream: StreamInfo, drafts: Sequence[Draft]) -> list[Appended]:
        """Number and keep one request's drafts, all or none.

        Raises ProducerWindow, TransientUnavailable (nothing was kept), OutcomeUnknown.
        """
        values: list[Any] = [
            stream.retain_events or limits.TRANSIENT_EVENTS_DEFAULT,
            stream.retain_bytes or limits.TRANSIENT_BYTES_DEFAULT,
            limits.PRODUCER_WINDOW,
            limits.TRANSIENT_PRODUCER_S,
            f"{_CHANNEL}{stream.id}",
        ]
        for draft in drafts:
            values += _draft_values(draft)
        segment, at_us, given = await self._asked(stream.id, values)
        if not segment:
            raise ProducerWindow(index=at_us, field="id.sequence", highest=int(given))
        places = [Appended(stream.id, segment.decode(), abs(n), n < 0) for n in given]
        self._take(stream.id, _stored(drafts, places, int(at_us)))
        return places

    async def _asked(self, stream_id: int, values: list[Any]) -> Any:
        """What the script says to one request. Those that wait together go in one round trip."""
        if self._redis is None:
            raise TransientUnavailable(_NO_REDIS)
        if len(self._waiting) >= limits.TRANSIENT_WAITING_MAX:
            raise Overloaded
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(_WaitingAppend(stream_id, values, answer))
        self._some_waiting.set()
        return await answer

    async def _send(self, client: "redis.asyncio.Redis") -> None:
        """One round trip at a time, for all that wait."""
        try:
            while True:
                await self._some_waiting.wait()
                count = min(len(self._waiting), limits.TRANSIENT_PIPELINE_MAX)
                taken = [self._waiting.popleft() for _ in range(count)]
                if not self._waiting:
                    self._some_waiting.clear()
                found = await _evaluated(client, taken)
                for waiting, each in zip(taken, found, strict=True):
                    _answer(waiting.answer, each)
        finally:
            while self._waiting:
                _answer(self._waiting.popleft().answer, TransientUnavailable())

    async def _head(self, stream_id: int) -> Cursor:
        return (await self._read(stream_id, 1, 0))[0]

    async def resolve(self, stream_id: int, start: Start) -> Position:
        """What a start means now; a transient stream begins anew with Redis, so `boot` is the
        oldest. Raises SegmentMismatch, Gone, TransientUnavailable.
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
        """Reads pages after a cursor, as Log.reader does."""

        async def read_page(cursor: Cursor, page: ReadLimits) -> list[StoredEvent]:
            first_wanted = cursor.sequence + 1
            last_wanted = cursor.sequence + page.events_max
            head, first, events = await self._read(stream_id, first_wanted, last_wanted)
            _require_held(cursor, head, first)
            return events

        return read_page

    async def run(self) -> None:
        """Keep the watched rings full until cancelled, through every absence of Redis."""
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
                async with client.pubsub(ignore_subscribe_messages=True) as said:
                    await said.psubscribe(f"{_CHANNEL}*")
                    if away:
                        self._distrust()
                    async for message in said.listen():
                        self._hear(int(message["channel"].rpartition(b":")[2]))
            except _AWAY:
                away = True
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def _keep_full(self) -> None:
        """Read what was heard of at once, and look at all watched rings every 250 ms."""
        clock = asyncio.get_running_loop().time
        while True:
            self._some_heard.clear()
            heard, self._heard = self._heard, set()
            if clock() >= self._look_at_s:
                watched = {stream_id for stream_id, _ in self.rings.all()}
                pause_s = limits.HEAD_POLL_INTERVAL_S if watched else limits.HEAD_REST_INTERVAL_S
                self._look_at_s = clock() + pause_s
                heard |= watched
            try:
                for stream_id in heard:
                    await self._fill(stream_id)
            except TransientUnavailable:
                self._distrust()
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            await set_within(self._some_heard, self._look_at_s - clock())

    def _look_soon(self) -> None:
        self._look_at_s = 0.0
        self._some_heard.set()

    async def _fill(self, stream_id: int) -> None:
        while (ring := self.rings.get(stream_id)) is not None:
            began_s = asyncio.get_running_loop().time()
            life = ring.life
            asked = ring.next
            last_wanted = asked + limits.READ_EVENTS_MAX
            head, first, events = await self._read(stream_id, asked, last_wanted)
            if ring.life != life:
                continue
            if not ring.trusted or head.segment != ring.head.segment or asked < first:
                ring.distrust()
                ring.skip_to(head)
                return
            ring.push(events)
            if ring.next > head.sequence:
                ring.confirmed_s = began_s
                return

    def _take(self, stream_id: int, rows: list[StoredEvent]) -> None:
        """Rows that this process has just appended."""
        ring = self.rings.get(stream_id)
        if ring is None or not rows:
            return
        if rows[0].segment != ring.head.segment or not ring.push(rows):
            self._hear(stream_id)

    def _hear(self, stream_id: int) -> None:
        if self.rings.get(stream_id) is not None:
            self._heard.add(stream_id)
            self._some_heard.set()

    def _distrust(self) -> None:
        self.rings.distrust()
        for stream_id, _ in self.rings.all():
            self._hear(stream_id)

    async def _read(
        self, stream_id: int, first: int, last: int
    ) -> tuple[Cursor, int, list[StoredEvent]]:
        """The head, the first sequence held, and the events of a range. Raises
        TransientUnavailable.
        """
        segment, held, head, rows = await self._script(_READ, stream_id, [first, last])
        name = segment.decode()
        events = [
            StoredEvent(name, int(key.partition(b"-")[0]), int(row[1]), int(row[5]), row[3])
            for key, row in rows
        ]
        return Cursor(name, int(head)), int(held), events

    async def _script(self, script: str, stream_id: int, values: list[Any]) -> Any:
        if self._redis is None:
            raise TransientUnavailable(_NO_REDIS)
        try:
            run = self._redis.register_script(script)
            async with asyncio.timeout(limits.TRANSIENT_TIMEOUT_S_MAX):
                return await run(_keys(stream_id), [str(uuid.uuid4()), *values])
        except _AWAY as error:
            raise TransientUnavailable() from error


def positions(url: str, stream_ids: Sequence[int]) -> dict[int, tuple[str, int, int]]:
    """Of each transient stream the segment's UUID, the first sequence held and the last given.

    Raises TransientUnavailable.
    """
    if not url:
        raise TransientUnavailable(_NO_REDIS)
    try:
        with redis.Redis.from_url(url, socket_timeout=limits.TRANSIENT_TIMEOUT_S_MAX) as client:
            run = client.register_script(_READ)
            found = {one: run(_keys(one), [str(uuid.uuid4()), 1, 0]) for one in stream_ids}
    except _AWAY as error:
        raise TransientUnavailable() from error
    return {one: (row[0].decode(), int(row[1]), int(row[2])) for one, row in found.items()}


def _client(url: str) -> "redis.asyncio.Redis":
    """Nothing is tried again by the library: a script that may have run must not run twice."""
    return redis.asyncio.Redis.from_url(
        url,
        socket_timeout=None,
        socket_connect_timeout=limits.TRANSIENT_TIMEOUT_S_MAX,
        retry=Retry(NoBackoff(), 0),
    )


class _NotSent(Exception):
    """There was no connection to send anything on."""


async def _evaluated(client: "redis.asyncio.Redis", taken: Sequence[_WaitingAppend]) -> list[Any]:
    """The script's answers, or errors in their places, whatever they are."""
    try:
        async with asyncio.timeout(limits.TRANSIENT_TIMEOUT_S_MAX):
            await _connected(client)
            async with client.pipeline(transaction=False) as pipe:
                for stream_id, values, _ in taken:
                    pipe.eval(_APPEND, 4, *_keys(stream_id), str(uuid.uuid4()), *values)
                return await pipe.execute(raise_on_error=False)
    except Exception as error:
        return [error] * len(taken)


async def _connected(client: "redis.asyncio.Redis") -> None:
    """Have a connection that is open and has its greetings behind it: the next command takes it.
    Raises _NotSent.
    """
    pool = client.connection_pool
    try:
        connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        await pool.release(connection)
    except Exception as error:
        raise _NotSent from error


def _answer(answer: "asyncio.Future[Any]", found: Any) -> None:
    if answer.done():
        return
    if isinstance(found, EventHubError):
        answer.set_exception(found)
    elif isinstance(found, BaseException):
        unavailable = TransientUnavailable() if _stored_nothing(found) else OutcomeUnknown()
        unavailable.__cause__ = found
        answer.set_exception(unavailable)
    else:
        answer.set_result(found)


def _keys(stream_id: int) -> list[str]:
    """In one slot of a cluster."""
    name = f"eventhub:{{t{stream_id}}}"
    return [f"{name}:meta", f"{name}:events", f"{name}:numbers", f"{name}:tokens"]


def _draft_values(draft: Draft) -> list[Any]:
    made = draft.producer
    if made is None:
        return [draft.mask, draft.payload, "", "", "", draft.token]
    producer = f"{made.client_id}:{made.incarnation}"
    slot = made.number % limits.PRODUCER_WINDOW
    return [draft.mask, draft.payload, producer, made.number, slot, draft.token]


def _stored(drafts: Sequence[Draft], places: list[Appended], at_us: int) -> list[StoredEvent]:
    return [
        StoredEvent(place.segment, place.sequence, draft.mask, at_us, draft.payload)
        for draft, place in zip(drafts, places, strict=True)
        if not place.duplicate
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


def _stored_nothing(error: BaseException) -> bool:
    """True if there was no connection, or Redis refused the script or the first thing that it would
    write. After that it refuses nothing for these reasons: a script is not left in its middle.
    """
    if isinstance(error, redis.ResponseError | redis.exceptions.BusyLoadingError):
        code = getattr(error, "status_code", None) or ""
        return _REFUSED.search(f"{code} {error}") is not None
    return isinstance(error, _NotSent) or isinstance(
        error.__cause__, ConnectionRefusedError | FileNotFoundError
    )
