"""The sockets of consumer sessions, and the arrivals of their events. Plain."""

import asyncio
import json
import random
import re
import sys
import time
from array import array
from typing import Any

from tests.benchmarks.load.http import RequestFailed, now_ns
from tests.benchmarks.load.jobs import SessionsJob, Target
from tests.benchmarks.load.wire import CLOSE, PING, PONG, TEXT, frame, handshake

KINDS = 5
_SESSION = re.compile(rb'"session":\s?"s(\d+)"')
_SEQUENCE = re.compile(rb'"sequence":\s?(\d+)')
_NUMBER = re.compile(rb'"n":\s?(\d+)')


class Arrivals:
    """The events that were due, and their arrival at each session."""

    def __init__(self, job: SessionsJob) -> None:
        self.job = job
        self.first = time.time_ns() // 1_000  # of its events; above those of runs before
        self.due: list[int] = []  # nanoseconds, by the number of the event
        self.took = array("q")
        self.received: set[tuple[int, int]] = set()  # session, event
        self.doubled = 0
        self.expected = 0  # frames at sessions
        self.warm = sys.maxsize  # the number of the first event that is timed
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stalled(self, session: int) -> bool:
        """Return whether the session is on a socket that stalls."""
        every = self.job.stalled
        return bool(every) and session // self.job.per_socket % every == 0

    def receive(self, session: int, number: int) -> None:
        """Record an arrival."""
        number -= self.first
        if number < 0:
            return  # of a run before: it was not acknowledged
        if (session, number) in self.received:
            self.doubled += 1
            return
        self.received.add((session, number))
        if number >= self.warm and not self.stalled(session):
            self.took.append(now_ns() - self.due[number])

    def next_events(self, count: int, due_ns: int) -> list[tuple[int, int, int]]:
        """Return new events: number, device, kind; each is due at this time. The first ones are for
        each session in turn.
        """
        job, found = self.job, []
        for number in range(len(self.due), len(self.due) + count):
            dice = random.Random(number)
            device, kind = dice.randrange(job.devices), dice.randrange(KINDS)
            if number < job.sessions:
                kind, device = divmod(number, job.devices)
            self.expected += 1
            self.due.append(due_ns)
            found.append((self.first + number, device, kind))
        return found

    def fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


class SessionSocket(asyncio.Protocol):
    """One websocket with its sessions, which are connected one after the other."""

    def __init__(self, target: Target, sessions: range, arrivals: Arrivals, stream: str) -> None:
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sessions = sessions
        self._stalls = False
        self._target = target
        self._arrivals = arrivals
        self._stream = stream
        self._connected = 0
        self._upgraded = False
        self._data = b""
        self._unacknowledged: dict[int, int] = {}  # the last sequence, by session

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.transport.write(handshake(self._target))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if not self._stalls:
            self._fail(RequestFailed(f"socket lost: {error!r}"))

    def stall(self) -> None:
        """Read nothing from now on; `lost` is set when the hub has closed the connection."""
        self.acknowledge()
        self.transport.pause_reading()
        self._stalls = True

    def probe(self) -> None:
        """Write something: a socket that is not read notices only by that that it was closed. The
        hub ignores an answer to no ping.
        """
        self.transport.write(frame(PONG, b""))

    def acknowledge(self) -> None:
        """Acknowledge what was received, for each session up to its last event."""
        if self._unacknowledged:
            found, self._unacknowledged = self._unacknowledged, {}
            self.transport.write(
                b"".join(
                    self._frame(op="ack", session=f"s{one}", stream=self._stream, sequence=last)
                    for one, last in found.items()
                )
            )

    def data_received(self, data: bytes) -> None:
        data = self._data + data if self._data else data
        at = 0
        if not self._upgraded:
            at = data.find(b"\r\n\r\n") + 4
            if at < 4:
                self._data = data
                return
            if not data.startswith(b"HTTP/1.1 101"):
                self._fail(RequestFailed(data[:400].decode("latin-1")))
                return
            self._upgraded = True
            self.transport.write(
                b"".join(self._frame(op="connect", session=f"s{one}") for one in self.sessions)
            )
        self._data = data[self._take(data, at) :]

    def _take(self, data: bytes, at: int) -> int:
        """Take the complete frames from an offset on; return where the rest begins."""
        size = len(data)
        while size - at >= 4:
            length, begin = data[at + 1], at + 2
            if length == 126:
                length, begin = data[at + 2] << 8 | data[at + 3], at + 4
            elif length == 127:
                begin = at + 10
                length = int.from_bytes(data[at + 2 : begin]) if size >= begin else size
            if begin + length > size:
                break
            self._message(data[at] & 0xF, data[begin : begin + length])
            at = begin + length
        return at

    def _message(self, opcode: int, payload: bytes) -> None:
        if payload.startswith(b'{"op":"event"'):
            session, sequence, number = (
                int(pattern.search(payload)[1])  # type: ignore[index]
                for pattern in (_SESSION, _SEQUENCE, _NUMBER)
            )
            self._unacknowledged[session] = sequence
            self._arrivals.receive(session, number)
        elif opcode == PING:
            self.transport.write(frame(PONG, payload))
        elif payload.startswith(b'{"op":"connected"'):
            self._connected += 1
            if self._connected == len(self.sessions) and not self.ready.done():
                self.ready.set_result(None)
        elif opcode == CLOSE or b'"op":"error"' in payload or b'"op":"disconnected"' in payload:
            self._fail(RequestFailed(payload[:400].decode("utf-8", "replace")))

    def _frame(self, **fields: Any) -> bytes:
        return frame(TEXT, json.dumps(fields).encode())

    def _fail(self, error: Exception) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
        self._arrivals.fail(error)
