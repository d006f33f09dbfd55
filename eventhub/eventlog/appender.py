"""Group commit for one process: waiting requests are appended in one transaction, in fair order
among clients. SQL module.

Concurrency contract: one task runs `run`; any task of the same loop may call `append`. One
transaction is in flight.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits, metrics
from eventhub.base.errors import (
    DatabaseUnavailable,
    EventHubError,
    OutcomeUnknown,
    Overloaded,
    TooManyRequests,
)
from eventhub.base.fair_queue import HUB_WORK, FairQueue, QueueOwner
from eventhub.base.logs import get_logger
from eventhub.eventlog.append import SQL, AppendRow, Rows, append_requests
from eventhub.eventlog.drafts import Appended, AppendedBatch, Outcome, Request
from eventhub.eventlog.errors import StorageFull
from eventhub.eventlog.tail import Tail
from eventhub.postgresql.connections import (
    CONNECTION_ERRORS,
    Connection,
    answered_within,
    broken,
    connect,
)
from eventhub.postgresql.prepared import Values, Watch, fetch_prepared

log = get_logger(__name__)


_BYTES_PER_UNIT = 4 * 1024  # stored bytes that cost about as much as a row


class _WaitingRequest(NamedTuple):
    owner: QueueOwner
    request: Request
    size_bytes: int
    answer: "asyncio.Future[list[Appended]]"


class Appender:
    """Appends for all callers of this process to streams of one durability: with `async` a commit
    does not wait for the disk.
    """

    def __init__(self, url: str, durability: str, tail: Tail) -> None:
        self._url = url
        self._durability = durability
        self._tail = tail
        self._connection: Connection | None = None
        self._watch: Watch | None = None  # of the connection
        self._waiting: FairQueue[_WaitingRequest] = FairQueue()
        self._waiting_events = 0
        self._waiting_bytes = 0
        self._waiting_of: dict[QueueOwner, int] = {}  # events
        self._some = asyncio.Event()
        self._refuse_until_s = 0.0

    async def append(self, request: Request, owner: QueueOwner = HUB_WORK) -> list[Appended]:
        """Store one request's drafts, all or none; return after the commit, one item per draft.
        `owner`: the owner of the drafts, for the fair order.

        Raises UnknownStream, ProducerWindow, DatabaseUnavailable (nothing stored), OutcomeUnknown,
        Overloaded, StorageFull, TooManyRequests.
        """
        loop = asyncio.get_running_loop()
        size_bytes = sum(len(draft.payload) for draft in request)
        if loop.time() < self._refuse_until_s:
            raise DatabaseUnavailable()
        if (
            self._waiting_events + len(request) > limits.APPEND_WAITING_EVENTS_MAX
            or self._waiting_bytes + size_bytes > limits.APPEND_WAITING_BYTES_MAX
        ):
            raise Overloaded()
        of_owner = self._waiting_of.get(owner, 0) + len(request)
        if of_owner > limits.APPEND_WAITING_EVENTS_PER_CLIENT_MAX:
            message = "Too many events of this client are waiting; send fewer at once."
            raise TooManyRequests(message, retry_after_s=1)
        waiting = _WaitingRequest(owner, request, size_bytes, loop.create_future())
        self._waiting.put(owner, waiting, len(request) + size_bytes // _BYTES_PER_UNIT)
        self._waiting_events += len(request)
        self._waiting_bytes += size_bytes
        self._waiting_of[owner] = of_owner
        self._some.set()
        return await waiting.answer

    async def run(self) -> None:
        """Append until cancelled, then refuse the requests that are still waiting."""
        try:
            while True:
                await self._some.wait()
                await self._append_or_answer(self._take())
                if not self._waiting:
                    self._some.clear()
        finally:
            _answer_all(
                self._take_all(), DatabaseUnavailable("The hub is stopping; nothing was stored.")
            )
            if self._connection is not None:
                await self._discarded(self._connection)

    def _take(self) -> list[_WaitingRequest]:
        """Take waiting requests in fair order, up to the size of one transaction; at least one."""
        taken: list[_WaitingRequest] = []
        events = size_bytes = 0
        while self._waiting:
            ahead = self._waiting.peek()
            events += len(ahead.request)
            size_bytes += ahead.size_bytes
            if taken and (
                events > limits.APPEND_EVENTS_MAX or size_bytes > limits.APPEND_BYTES_MAX
            ):
                break
            taken.append(self._waiting.pop())
        self._uncount(taken)
        return [waiting for waiting in taken if not waiting.answer.done()]

    def _take_all(self) -> list[_WaitingRequest]:
        taken = [self._waiting.pop() for _ in range(len(self._waiting))]
        self._uncount(taken)
        return taken

    def _uncount(self, taken: list[_WaitingRequest]) -> None:
        for owner, request, size_bytes, _ in taken:
            self._waiting_events -= len(request)
            self._waiting_bytes -= size_bytes
            self._waiting_of[owner] -= len(request)
            if not self._waiting_of[owner]:
                del self._waiting_of[owner]

    async def _append_or_answer(self, taken: list[_WaitingRequest]) -> None:
        """Append and answer every request, also after an unexpected error, so that no caller waits
        forever and the task goes on.
        """
        try:
            await self._append_some(taken)
        except Exception:
            log.exception("append_failed", requests=len(taken))
            _answer_all(taken, OutcomeUnknown())

    async def _append_some(self, taken: list[_WaitingRequest]) -> None:
        if not taken:
            return
        try:
            batch = await self._transaction(taken)
        except (DatabaseUnavailable, OutcomeUnknown, StorageFull) as error:
            _answer_all(taken, error)
        except psycopg.Error as error:
            log.warning("append_refused_by_sql", error=str(error), requests=len(taken))
            await self._append_apart(taken, error)
        else:
            self._publish(taken, batch)

    async def _append_apart(self, taken: list[_WaitingRequest], error: psycopg.Error) -> None:
        """Retry a batch that failed in SQL request by request, so that only the bad one fails."""
        if len(taken) == 1:
            _answer_all(
                taken,
                EventHubError(f"The database refused the events: {error.diag.message_primary}"),
            )
            return
        for waiting in taken:
            await self._append_some([waiting])

    async def _transaction(self, taken: list[_WaitingRequest]) -> AppendedBatch:
        """Append in one transaction. Raises DatabaseUnavailable or StorageFull if nothing was
        stored, OutcomeUnknown if the connection broke before the answer.
        """
        connection, watch = await self._connected()
        requests = [waiting.request for waiting in taken]
        try:
            with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                return await append_requests(partial(_append, connection, watch), requests)
        except BaseException as error:
            server_refused = isinstance(error, psycopg.Error) and not connection.closed
            self._drop(connection)
            if isinstance(error, psycopg.errors.DiskFull):
                raise StorageFull(retry_after_s=limits.STORAGE_FULL_RETRY_S) from error
            if not isinstance(error, CONNECTION_ERRORS):
                raise
            if server_refused:
                raise DatabaseUnavailable() from error
            log.warning("append_outcome_unknown", requests=len(taken), error=str(error))
            raise OutcomeUnknown() from error

    async def _connected(self) -> tuple[Connection, Watch]:
        if self._connection is not None and broken(self._connection):
            self._drop(self._connection)
        if self._connection is None or self._watch is None:
            try:
                self._connection = await self._connect()
            except DatabaseUnavailable:
                self._refuse_until_s = asyncio.get_running_loop().time() + limits.RECONNECT_PAUSE_S
                raise
            self._watch = Watch(self._connection.pgconn)
        return self._connection, self._watch

    async def _connect(self) -> Connection:
        """Connect, and prove the log's continuity before anything is appended."""
        name = "eventhub append" if self._durability == "sync" else "eventhub append async"
        connection = await connect(self._url, name=name)
        try:
            with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
                proof = await self._tail.continuity.prove(connection)
                await connection.execute("SET plan_cache_mode = force_generic_plan")
                if self._durability == "async":
                    await connection.execute("SET synchronous_commit = off")
        except BaseException as error:
            await connection.close()
            if isinstance(error, (*CONNECTION_ERRORS, psycopg.Error)):
                raise DatabaseUnavailable() from error
            raise
        self._tail.connected(proof.life)
        return connection

    def _drop(self, connection: Connection) -> None:
        """Discard a connection in an unknown state; the server rolls back its transaction."""
        _closing.add(task := asyncio.ensure_future(self._discarded(connection)))
        task.add_done_callback(_closing.discard)

    def _discarded(self, connection: Connection) -> Coroutine[Any, Any, None]:
        """Stop to use the connection at once; return what closes it."""
        self._connection = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        return connection.close()

    def _publish(self, taken: list[_WaitingRequest], batch: AppendedBatch) -> None:
        """Pass the committed rows to the tail, then answer: local readers get an event no later
        than its emitter gets the answer.
        """
        metrics.APPENDED.inc(len(batch.rows))
        metrics.APPEND_BATCH.observe(len(batch.rows))
        self._tail.committed(batch.rows, batch.watchers, durable=self._durability == "sync")
        for waiting, outcome in zip(taken, batch.outcomes, strict=True):
            _answer(waiting, outcome)


_closing: set["asyncio.Future[None]"] = set()


async def _append(connection: Connection, watch: Watch, statement: str, arguments: Values) -> Rows:
    return await fetch_prepared(connection, AppendRow, SQL[statement], arguments, watch)


def _answer(waiting: _WaitingRequest, outcome: Outcome) -> None:
    if waiting.answer.done():
        return
    if isinstance(outcome, EventHubError):
        waiting.answer.set_exception(outcome)
    else:
        waiting.answer.set_result(outcome)


def _answer_all(taken: list[_WaitingRequest], error: EventHubError) -> None:
    for waiting in taken:
        _answer(waiting, error)
