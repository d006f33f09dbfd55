"""Looks after all readers of a process once in a while: slow readers, pings, lost confirmation of
grants. Plain module.

Concurrency contract: one event loop; `run` is one task.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from delivery.listening.frames import Frame
from delivery.listening.reader import Reader
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import Overloaded, TooManyRequests
from eventhub.base.logs import get_logger
from eventhub.base.waiting import set_within

log = get_logger(__name__)


class Socket(Protocol):
    """What can be done with a connection besides sending (eventhub/websocket.py, server.py)."""

    def abandon(self, frame: Frame) -> None:
        """Send a last frame without waiting, and drop the connection soon after."""

    def unsent_bytes(self) -> int:
        """What it has not taken yet."""
        ...


class Kept:
    """A reader under care, and when it last took something."""

    __slots__ = ("frames", "reader", "since_s", "socket", "took_s", "unsent")

    def __init__(self, reader: Reader, socket: Socket, now_s: float) -> None:
        self.reader = reader
        self.socket = socket
        self.since_s = now_s
        self.took_s = now_s
        self.frames = 0
        self.unsent = 0

    def stalled_s(self, now_s: float) -> float:
        """For how long a waiting frame has made no progress: neither a frame nor some bytes of a
        large one taken.
        """
        reader = self.reader
        unsent = self.socket.unsent_bytes() if reader.sending else 0
        if (
            not reader.sending
            or reader.frames_taken != self.frames
            or unsent <= self.unsent - limits.SEND_PROGRESS_BYTES_MIN
        ):
            self.frames, self.unsent, self.took_s = reader.frames_taken, unsent, now_s
        self.unsent = max(self.unsent, unsent)  # a frame came on top
        return now_s - self.took_s

    def overfull(self) -> bool:
        """True if more waits for the reader than frames can explain: it pings, and never reads."""
        return self.socket.unsent_bytes() > limits.UNSENT_BYTES_MAX


class Keeper:
    """The sockets of one process."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._kept: dict[int, Kept] = {}
        self._some = asyncio.Event()
        self._by_client: Counter[int] = Counter()
        self._coming: Counter[int] = Counter()  # by client: places taken, and not kept yet

    @contextmanager
    def place(self, principal: Principal) -> Iterator[None]:
        """A socket's place while what it needs is being made: counted from now on, so that a burst
        cannot go by the bounds. What is made is added inside. Raises Overloaded, TooManyRequests.
        """
        self._require_place(principal)
        client = principal.client_id
        self._coming[client] += 1
        try:
            yield
        finally:
            self._coming[client] -= 1
            if not self._coming[client]:
                del self._coming[client]

    def _require_place(self, principal: Principal) -> None:
        client = principal.client_id
        if len(self._kept) + self._coming.total() >= limits.SOCKETS_PER_PROCESS_MAX:
            raise Overloaded("This process has as many sockets as it may; try again.")
        if self._by_client[client] + self._coming[client] >= limits.SOCKETS_PER_CLIENT_MAX:
            raise TooManyRequests(
                "This client has as many sockets as it may; close some.",
                sockets_max=limits.SOCKETS_PER_CLIENT_MAX,
                retry_after_s=10,
            )

    def add(self, reader: Reader, socket: Socket) -> None:
        self._kept[id(reader)] = Kept(reader, socket, asyncio.get_running_loop().time())
        self._by_client[reader.principal.client_id] += 1
        self._some.set()
        metrics.SOCKETS.inc()

    def remove(self, reader: Reader) -> None:
        if self._kept.pop(id(reader), None) is not None:
            self._by_client[reader.principal.client_id] -= 1
            metrics.SOCKETS.dec()

    async def run(self) -> None:
        """Look after the sockets until cancelled."""
        while True:
            if not self._kept:
                self._some.clear()
                await set_within(self._some, limits.KEEPER_IDLE_INTERVAL_S)
            if self._kept:
                await asyncio.sleep(limits.KEEPER_INTERVAL_S)
                self._look_at_all()
            metrics.SENT.flush()

    def _look_at_all(self) -> None:
        fresh = self._authorizer.fresh()
        now_s = asyncio.get_running_loop().time()
        for kept in list(self._kept.values()):
            self._look(kept, now_s)
            if fresh == kept.reader.waiting:
                kept.reader.waker.set()

    def _look(self, kept: Kept, now_s: float) -> None:
        reader = kept.reader
        stalled_s = kept.stalled_s(now_s)
        if stalled_s > limits.SEND_STALL_S_MAX or kept.overfull():
            log.info("slow_reader_told_to_resume", client=reader.principal.client)
            metrics.SLOW_READERS.inc()
            self.remove(reader)
            reader.why = "slow_reader"
            kept.socket.abandon(reader.resume_message())
            return
        pings = int((now_s - kept.since_s) / limits.PING_INTERVAL_S)
        if pings != reader.pings_due or reader.expired():
            reader.pings_due = pings
            reader.waker.set()
