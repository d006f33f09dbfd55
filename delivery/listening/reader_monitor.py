"""Periodic checks of all readers of a process: slow readers, pings, expired credentials, and rights
that could not be confirmed; and the bounds on their number. Plain module.

Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from delivery.listening.frames import Frame
from delivery.listening.reader import Reader
from delivery.listening.socket_places import SocketPlaces
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import Overloaded, TooManyRequests
from eventhub.base.event_loop import pause_together_s, wait_until_set
from eventhub.base.logs import get_logger

log = get_logger(__name__)
_TURNS = 4  # until all readers are checked: all of ten thousand at once would delay what is sent


class ReaderConnection(Protocol):
    """The transport under a reader, apart from sending (eventhub/web/websocket.py, server.py)."""

    def abandon(self, frame: Frame) -> None:
        """Send a last frame without waiting, and drop the connection soon after."""

    def unsent_bytes(self) -> int:
        """Return the bytes that the connection has not taken yet."""
        ...


class _MonitoredReader:
    """A reader, when it last took something, and the turn in which it is checked."""

    __slots__ = ("connection", "frames", "reader", "since_s", "took_s", "turn", "unsent")

    def __init__(
        self, reader: Reader, connection: ReaderConnection, now_s: float, turn: int
    ) -> None:
        self.reader = reader
        self.connection = connection
        self.turn = turn
        self.since_s = now_s
        self.took_s = now_s
        self.frames = 0
        self.unsent = 0

    def stalled_s(self, now_s: float) -> float:
        """Return for how many seconds a waiting frame has made no progress: neither a frame was
        taken nor some bytes of a large one.
        """
        reader = self.reader
        unsent = self.connection.unsent_bytes() if reader.sending else 0
        if (
            not reader.sending
            or reader.frames_taken != self.frames
            or unsent <= self.unsent - limits.SEND_PROGRESS_BYTES_MIN
        ):
            self.frames, self.unsent, self.took_s = reader.frames_taken, unsent, now_s
        self.unsent = max(self.unsent, unsent)  # a frame was added
        return now_s - self.took_s

    def overfull(self) -> bool:
        """Return whether more bytes wait than frames can explain: the reader pings and never
        reads.
        """
        return self.connection.unsent_bytes() > limits.UNSENT_BYTES_MAX


class ReaderMonitor:
    """The readers of one process."""

    def __init__(self, authorizer: Authorizer, places: SocketPlaces) -> None:
        self._authorizer = authorizer
        self._places = places  # over all processes
        self._monitored: dict[int, _MonitoredReader] = {}
        self._has_readers = asyncio.Event()
        self._fresh = True
        self._turns = itertools.cycle(range(_TURNS))  # of checks ...
        self._next_turns = itertools.cycle(range(_TURNS))  # ... and of readers that are added
        self._by_client: Counter[int] = Counter()
        self._reserved: Counter[int] = Counter()  # by client: admitted, and not added yet

    async def admit(self, principal: Principal) -> AbstractContextManager[None]:
        """Reserve the place of a reader for a block in which its parts are created, so that a burst
        cannot exceed the bounds. Call `add` inside the block. Raises Overloaded, TooManyRequests
        and SocketsLimited; if the client has a quota of sockets also DatabaseUnavailable.
        """
        self._require_room(principal)
        self._reserved[principal.client_id] += 1
        try:
            await self._places.take(principal)
        except BaseException:
            self._cancel(principal)
            raise
        return self._reserving(principal)

    @contextmanager
    def _reserving(self, principal: Principal) -> Iterator[None]:
        try:
            yield
        finally:
            self._cancel(principal)
            self._places.release(principal)

    def _cancel(self, principal: Principal) -> None:
        """End a reservation in this process."""
        client = principal.client_id
        self._reserved[client] -= 1
        if not self._reserved[client]:
            del self._reserved[client]

    def _require_room(self, principal: Principal) -> None:
        client = principal.client_id
        if len(self._monitored) + self._reserved.total() >= limits.SOCKETS_PER_PROCESS_MAX:
            raise Overloaded("This process has the maximum number of sockets; try again.")
        if self._by_client[client] + self._reserved[client] >= limits.SOCKETS_PER_CLIENT_MAX:
            raise TooManyRequests(
                "This client has the maximum number of sockets in this process; close some.",
                sockets_max=limits.SOCKETS_PER_CLIENT_MAX,
                retry_after_s=10,
            )

    def add(self, reader: Reader, connection: ReaderConnection) -> None:
        now_s = asyncio.get_running_loop().time()
        turn = next(self._next_turns)
        self._monitored[id(reader)] = _MonitoredReader(reader, connection, now_s, turn)
        self._by_client[reader.principal.client_id] += 1
        self._places.add(reader.principal)
        self._has_readers.set()
        metrics.SOCKETS.inc()

    def remove(self, reader: Reader) -> None:
        if self._monitored.pop(id(reader), None) is not None:
            self._by_client[reader.principal.client_id] -= 1
            self._places.release(reader.principal)
            metrics.SOCKETS.dec()

    async def run(self) -> None:
        """Check the readers until cancelled."""
        while True:
            if not self._monitored:
                self._has_readers.clear()
                pause_s = pause_together_s(limits.READER_CHECK_IDLE_INTERVAL_S)
                await wait_until_set(self._has_readers, pause_s)
            if self._monitored:
                await asyncio.sleep(limits.READER_CHECK_INTERVAL_S)
                self._check_some()
            metrics.SENT.flush()

    def _check_some(self) -> None:
        """Check some of the readers; all, once rights can be confirmed again or no longer. A
        reader keeps its turn while others come and go.
        """
        before, self._fresh = self._fresh, self._authorizer.fresh()
        fresh, turn = self._fresh, next(self._turns)
        now_s = asyncio.get_running_loop().time()
        for monitored in [*self._monitored.values()]:
            if monitored.turn != turn and fresh == before:
                continue
            self._check(monitored, now_s)
            if fresh == monitored.reader.waiting:
                monitored.reader.waker.set()

    def _check(self, monitored: _MonitoredReader, now_s: float) -> None:
        reader = monitored.reader
        stalled_s = monitored.stalled_s(now_s)
        if stalled_s > limits.SEND_STALL_S_MAX or monitored.overfull():
            log.info("slow_reader_disconnected", client=reader.principal.client)
            metrics.SLOW_READERS.inc()
            self.remove(reader)
            reader.end_reason = "slow_reader"
            monitored.connection.abandon(reader.resume_message())
            return
        pings = int((now_s - monitored.since_s) / limits.PING_INTERVAL_S)
        if pings != reader.pings_due or reader.expired():
            reader.pings_due = pings
            reader.waker.set()
