"""Durable push consumers of a NATS JetStream, as much of its protocol as the comparison needs.
Plain.

A consumer filters by subject: `reading.DEVICE.KIND`.
"""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from tests.benchmarks.load.http import HOST, RequestFailed

STREAM = "bench"
OPENING_MAX = 20  # connections that create their consumers at once
ANSWER_S = 120.0
_NUMBER = re.compile(rb'"n":\s?(\d+)')
Body = Callable[[int, int, int], bytes]


class NatsConnection(asyncio.Protocol):
    """A connection. `received` gets the number of each subscription's message, and its reply."""

    def __init__(
        self, received: Callable[[int, bytes, bytes], None], failed: Callable[..., None]
    ) -> None:
        self._received = received
        self._failed = failed
        self._data = b""
        self._answers: dict[bytes, asyncio.Future[bytes]] = {}
        self._asked = 0
        self.acks: dict[int, bytes] = {}  # the reply subject of the last message, by consumer
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.transport.write(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB inbox.%d.* 0\r\n'
                             % id(self))  # fmt: skip

    def connection_lost(self, error: Exception | None) -> None:
        self._failed(RequestFailed(f"connection lost: {error}"))

    def subscribe(self, subject: str, number: int) -> None:
        self.transport.write(f"SUB {subject} {number}\r\n".encode())

    def publish(self, subject: str, payload: bytes, reply: str = "") -> bytes:
        """Return the bytes that publish a message."""
        return f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n"

    async def ask(self, subject: str, request: Any) -> dict[str, Any]:
        """Return the answer to a request. Raise RequestFailed."""
        self._asked += 1
        reply = f"inbox.{id(self)}.{self._asked}"
        answer = asyncio.get_running_loop().create_future()
        self._answers[reply.encode()] = answer
        self.transport.write(self.publish(subject, json.dumps(request).encode(), reply))
        found: dict[str, Any] = json.loads(await asyncio.wait_for(answer, ANSWER_S))
        if "error" in found:
            raise RequestFailed(f"{subject}: {found['error']}")
        return found

    def acknowledge(self) -> None:
        """Acknowledge everything up to the last message of each consumer."""
        found, self.acks = self.acks, {}
        self.transport.write(b"".join(b"PUB %b 4\r\n+ACK\r\n" % reply for reply in found.values()))

    def data_received(self, data: bytes) -> None:
        data = self._data + data if self._data else data
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            line = data[at:end]
            after = end + 2
            if line.startswith(b"MSG "):
                words = line.split()
                after = end + 4 + int(words[-1])
                if len(data) < after:
                    break
                self._message(words, data[end + 2 : after - 2])
            elif line == b"PING":
                self.transport.write(b"PONG\r\n")
            elif line.startswith(b"-ERR"):
                self._failed(RequestFailed(line.decode()))
            at = after
        self._data = data[at:]

    def _message(self, words: list[bytes], payload: bytes) -> None:
        if words[2] != b"0":
            self._received(int(words[2]) - 1, words[3], payload)
        elif words[1] in self._answers:
            self._answers.pop(words[1]).set_result(payload)


class NatsSide:
    """The server of NATS: connections with consumers, and a producer."""

    def __init__(self, arrivals: Any, body: Body) -> None:
        self._arrivals = arrivals
        self._job = arrivals.job
        self._body = body
        self._producer: NatsConnection | None = None
        self._connections: list[NatsConnection] = []

    async def open(self, sessions: range) -> None:
        """Create so many more consumers, those on one connection in turn."""
        if self._producer is None:
            self._producer = await self._connect()
            stream = {"name": STREAM, "subjects": ["reading.>"], "storage": "file"}
            await self._producer.ask(
                f"$JS.API.STREAM.CREATE.{STREAM}",
                {**stream, "retention": "limits", "max_bytes": 4 << 30, "discard": "old"},
            )
        step = self._job.per_socket
        opening = []
        for at in range(sessions.start, sessions.stop, step):
            opening.append(self._create(range(at, min(at + step, sessions.stop))))
            if len(opening) == OPENING_MAX:
                await asyncio.gather(*opening)
                opening = []
        await asyncio.gather(*opening)

    async def start(self) -> None:
        """Have the producer, which is connected."""

    def post(self, events: list[tuple[int, int, int]]) -> None:
        assert self._producer is not None
        self._producer.transport.write(
            b"".join(
                self._producer.publish(f"reading.{device}.{kind}", self._body(n, device, kind))
                for n, device, kind in events
            )
        )

    @property
    def acknowledging(self) -> list[NatsConnection]:
        return [*self._connections]

    async def _create(self, sessions: range) -> None:
        connection = await self._connect()
        for session in sessions:
            kind, device = divmod(session, self._job.devices)
            connection.subscribe(f"deliver.s{session}", session + 1)
            config = {
                "durable_name": f"s{session}",
                "deliver_subject": f"deliver.s{session}",
                "deliver_policy": "new",
                "ack_policy": "all",
                "max_ack_pending": 100,
                "ack_wait": 300_000_000_000,
                "filter_subject": f"reading.{device}.{kind}",
            }
            await connection.ask(
                f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.s{session}",
                {"stream_name": STREAM, "config": config},
            )
        self._connections.append(connection)

    async def _connect(self) -> NatsConnection:
        connection: NatsConnection

        def received(session: int, reply: bytes, payload: bytes) -> None:
            found = _NUMBER.search(payload)
            connection.acks[session] = reply
            if found is not None:
                self._arrivals.receive(session, int(found[1]))

        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: NatsConnection(received, self._arrivals.fail), HOST, self._job.target.port
        )
        return connection
