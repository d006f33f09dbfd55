"""One consumer session of `tests.chaos sessions`, over as many connections as it takes."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import aiohttp
import orjson

from tests.chaos.sessions.flow import Key

RECONNECT_S = 0.05
DRAIN_CREDIT = 10_000
HEAR_S = 60.0
LOOK_S = 0.2


class Plan(NamedTuple):
    """A session and its settings."""

    name: str
    order: str
    options: dict[str, Any]


class Received(NamedTuple):
    """An event as it came."""

    key: Key
    number: int
    reason: str  # of an event out of its order
    at_us: int


class Connection(NamedTuple):
    """One connection of a session: what was acknowledged for certain before it, and what came."""

    began_us: int
    stored: frozenset[Key]
    received: list[Received]
    quiet: bool  # nothing was emitted meanwhile, and everything could come at once


class Consumer:
    """A session. `stored`: the events whose acknowledgement the hub has confirmed, so that they
    must not come again; `acknowledged`: those that need not come again.
    """

    def __init__(self, url: str, plan: Plan, dice: random.Random) -> None:
        self.plan = plan
        self.connections: list[Connection] = []
        self.stored: set[Key] = set()
        self.acknowledged: set[Key] = set()
        self.problems: list[str] = []
        self.losses = 0
        self._url = f"{url}/v1/ws"
        self._dice = dice
        self._asked: dict[str, list[Key]] = {}
        self._ids = 0

    async def run(self, http: aiohttp.ClientSession) -> None:
        """Receive and acknowledge at random, and disconnect at random, until cancelled."""
        while True:
            with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                await self._live(http)
            await asyncio.sleep(RECONNECT_S)

    async def drain(
        self,
        http: aiohttp.ClientSession,
        complete: Callable[[Connection], bool],
        *,
        acknowledge: bool,
    ) -> None:
        """Receive what the hub holds, on a connection of its own, until that is complete and the
        hub has nothing more to send. Raise ConnectionError or ClientError when it is lost,
        TimeoutError when it is never complete.
        """
        async with http.ws_connect(self._url, max_msg_size=0, compress=0) as socket:
            connection = await self._connect(socket, quiet=True)
            await self._say(socket, "credit", session=self.plan.name, events=DRAIN_CREDIT)
            async with asyncio.timeout(HEAR_S):
                while not complete(connection):  # asked in pauses: it looks at all events
                    with suppress(TimeoutError):
                        while True:
                            self._take(await socket.receive(LOOK_S), connection)
                while not await self._nothing_waits(socket, connection):
                    pass
            if acknowledge:
                keys = [each.key for each in connection.received]
                await self._acknowledge(socket, keys)
                while self._asked:
                    self._take(await socket.receive(HEAR_S), connection)

    async def _live(self, http: aiohttp.ClientSession) -> None:
        dice = self._dice
        async with http.ws_connect(self._url, max_msg_size=0, compress=0) as socket:
            connection = await self._connect(socket, quiet=False)
            ends_s = time.monotonic() + dice.uniform(0.2, 6.0)
            unacknowledged: list[Key] = []
            while time.monotonic() < ends_s:
                with suppress(TimeoutError):
                    before = len(connection.received)
                    self._take(await socket.receive(dice.uniform(0.01, 0.3)), connection)
                    unacknowledged += [each.key for each in connection.received[before:]]
                if unacknowledged and dice.random() < 0.2:
                    some = [key for key in unacknowledged if dice.random() < 0.7]
                    unacknowledged = [key for key in unacknowledged if key not in set(some)]
                    await self._acknowledge(socket, some)
            if dice.random() < 0.5:
                await self._say(socket, "disconnect", session=self.plan.name)
                with suppress(TimeoutError):
                    while self._take(await socket.receive(5.0), connection) != "disconnected":
                        pass

    async def _connect(self, socket: aiohttp.ClientWebSocketResponse, *, quiet: bool) -> Connection:
        self._asked = {}
        stored = frozenset(self.stored)
        await self._say(socket, "connect", session=self.plan.name)
        connection = Connection(time.time_ns() // 1_000, stored, [], quiet)
        while (op := self._take(await socket.receive(HEAR_S), connection)) != "connected":
            if op == "error":
                raise ConnectionError
        self.connections.append(connection)
        return connection

    async def _nothing_waits(
        self, socket: aiohttp.ClientWebSocketResponse, connection: Connection
    ) -> bool:
        """Return whether nothing comes before the answer to a ping."""
        before = len(connection.received)
        await self._say(socket, "ping", id="drain")
        while self._take(await socket.receive(), connection) != "pong":
            pass
        return len(connection.received) == before

    async def _acknowledge(self, socket: aiohttp.ClientWebSocketResponse, keys: list[Key]) -> None:
        """Acknowledge events; most with an id, whose answer says that it is stored."""
        for stream in sorted({stream for stream, _ in keys}):
            of_stream = [key for key in keys if key[0] == stream]
            for at in range(0, len(of_stream), 500):
                some = of_stream[at : at + 500]
                self._ids += 1
                fields = {"session": self.plan.name, "stream": stream, "id": str(self._ids)}
                self._asked[str(self._ids)] = some
                self.acknowledged.update(some)
                await self._say(socket, "ack", sequences=[n for _, n in some], **fields)

    async def _say(self, socket: aiohttp.ClientWebSocketResponse, op: str, **fields: Any) -> None:
        await socket.send_str(orjson.dumps({"op": op, **fields}).decode())

    def _take(self, message: aiohttp.WSMessage, connection: Connection) -> str:
        """Take a message; return its type. Raise ConnectionError when the connection is lost."""
        if message.type is not aiohttp.WSMsgType.TEXT:
            self.losses += 1
            raise ConnectionError
        found = orjson.loads(message.data)
        op: str = found["op"]
        if op == "event":
            number = found["event"]["attributes"]["n"]
            key = found["stream"], found["sequence"]
            reason = found.get("out_of_order", "")
            at_us = time.time_ns() // 1_000
            connection.received.append(Received(key, number, reason, at_us))
        elif op == "acked":
            self.stored.update(self._asked.pop(found["id"], ()))
        elif _is_problem(found):
            self.problems.append(f"{self.plan.name}: {found}")
        return op


def _is_problem(found: dict[str, Any]) -> bool:
    """Return whether the hub should not have sent a message in this run."""
    if found["op"] == "disconnected":
        return found["reason"] not in ("stopped", "replaced")
    if found["op"] == "error":
        return bool(found["status"] < 500)
    return found["op"] in ("gap", "segment_mismatch")
