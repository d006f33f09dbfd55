"""Readers over HTTP that take nothing, go away, or outlive their process."""

import asyncio
import json
import socket
import time
from collections import Counter
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest

from eventhub.base import limits
from tests.acceptance.transports import LINES, SSE, ListenerSpec, events_of
from tests.acceptance.wire import EVENT, numbered, sockets, until
from tests.live import LiveHub, LiveZone

HEAR_TIMEOUT_S = 30.0
STALL_S = 40.0  # the hub's own bound, and time for a busy machine


def connect(hub: LiveHub, key: str, query: str, accept: str) -> socket.socket:
    """Return a reader with a small buffer, that has spec."""
    made = _small_socket(hub)
    made.sendall(
        f"GET /v1/streams/orders/events?{query} HTTP/1.1\r\nHost: hub\r\n"
        f"Authorization: Bearer {key}\r\nAccept: {accept}\r\n\r\n".encode()
    )
    return made


def _small_socket(hub: LiveHub) -> socket.socket:
    """Return a connection with a small buffer."""
    host, port = hub.web[0].url.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect((host, int(port)))
    made.settimeout(STALL_S)
    return made


def subscribe(hub: LiveHub, zone: LiveZone) -> socket.socket:
    """Return a stream of MCP with a small buffer, that begins with the first event."""
    path = f"/v1/types/{EVENT['domain']}/{EVENT['type']}"
    assert hub.call("PUT", path, {"schema": {"type": "object"}}, key=zone.admin).status == 201
    page = hub.call("GET", "/v1/streams/orders/events?from=oldest&limit=1", key=zone.admin).json
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {
        "name": f"{EVENT['domain']}::{EVENT['type']}",
        "arguments": {"stream": "orders"},
        "cursor": f"{page['cursor']['segment']}:0",
        "_meta": meta,
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "events/stream", "params": params}
    body = json.dumps(message).encode()
    made = _small_socket(hub)
    made.sendall(
        f"POST /mcp HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer {zone.admin}\r\n"
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: events/stream\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    return made


async def test_a_reader_that_reads_nothing_is_disconnected_and_delays_no_other(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Three readers, one for each unbounded form of answer."""
    zone.create_stream("orders")
    large = {**EVENT, "body": "x" * 900_000}
    for _ in range(3):
        assert zone.emit("orders", [large] * 8).status == 200
    before = sockets(hub)
    with (
        connect(hub, zone.admin, "from=oldest", SSE) as one,
        connect(hub, zone.admin, "from=oldest", LINES) as other,
        subscribe(hub, zone) as subscriber,
    ):
        await until(lambda: sockets(hub) == before + 3)
        head = (hub.call("GET", "/v1/streams/orders/events?from=now", key=zone.admin)).json
        cursor = f"{head['cursor']['segment']}:{head['cursor']['sequence']}"
        zone.emit("orders", numbered(1, 1))
        prompt = hub.call(
            "GET", f"/v1/streams/orders/events?from={cursor}&timeout=20", key=zone.admin
        )
        assert [item["sequence"] for item in prompt.json["events"]] == [25]
        await until(lambda: sockets(hub) == before, STALL_S)
        for slow in (one, other, subscriber):
            assert await asyncio.to_thread(_rest, slow) < 20_000_000, "it was sent everything"


def _rest(slow: socket.socket) -> int:
    """Return the number of bytes until the connection ends."""
    size = 0
    try:
        while piece := slow.recv(1 << 20):
            size += len(piece)
    except ConnectionResetError:
        pass
    return size


def test_a_poll_waits_for_the_requested_time(hub: LiveHub, zone: LiveZone) -> None:
    """A proxy's or a server's own patience often ends it after five seconds."""
    zone.create_stream("orders")
    began_s = time.monotonic()
    page = hub.call("GET", "/v1/streams/orders/events?from=now&timeout=6", key=zone.admin)
    assert (page.status, page.json["events"]) == (200, [])
    assert time.monotonic() - began_s >= 6


@pytest.mark.parametrize(("query", "accept"), [("timeout=60", "*/*"), ("", SSE)])
async def test_a_reader_that_goes_away_is_let_go_at_once(
    hub: LiveHub, zone: LiveZone, query: str, accept: str
) -> None:
    zone.create_stream("orders")
    before = sockets(hub)
    connected = connect(hub, zone.admin, query, accept)
    await until(lambda: sockets(hub) == before + 1)
    connected.close()
    await until(lambda: sockets(hub) == before)


async def test_a_stopping_process_ends_its_readers_in_good_order(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Polls are answered, events end, and both resume at another process from where they are."""
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 2))
    web = hub.web[1]
    spec = ListenerSpec(hub, zone.admin, "orders", "oldest")
    url = f"{web.url}/v1/streams/orders/events"
    headers = {"Authorization": f"Bearer {zone.admin}"}
    before = sockets(hub)
    async with asyncio.timeout(HEAR_TIMEOUT_S), aiohttp.ClientSession(headers=headers) as http:

        async def poll() -> dict[str, Any]:
            async with http.get(url, params={"timeout": "60"}) as response:
                page: dict[str, Any] = await response.json()
                return page

        messages: list[dict[str, Any]] = []

        async def listen() -> None:
            async with aclosing(events_of(spec)) as events:  # type: ignore[type-var]
                async for message in events:
                    messages.append(message)  # noqa: PERF401 - counted as they come

        polling, listening = asyncio.create_task(poll()), asyncio.create_task(listen())
        await until(lambda: sockets(hub) == before + 2 and len(messages) == 3)
        try:
            web.stop()
            page = await polling
            await listening
        finally:
            web.start()
    assert (page["events"], page["cursor"]["sequence"]) == ([], 2)
    assert [message.get("sequence") for message in messages] == [None, 1, 2]


async def test_a_quiet_reader_s_cursor_moves_on_with_the_sign_of_life(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Every 15 s: what is not interest costs no bytes, and still need not be read again."""
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 3, mask=2))
    spec = ListenerSpec(hub, zone.admin, "orders", "oldest", {"mask": "1"})
    messages: list[dict[str, Any]] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(events_of(spec)) as events:  # type: ignore[type-var]
        async for message in events:
            messages.append(message)
            if message["op"] == "position":
                break
    listening, position = messages
    assert listening["cursor"]["sequence"] == 0
    assert (position["prev"], position["sequence"]) == (0, 3)
    assert position["id"] == f"{position['segment']}:3"
    assert json.dumps(position["cursor"])


async def test_readers_that_come_all_at_once_do_not_get_by_the_bound_of_a_client(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Each of them is counted before it is let in, not after."""
    zone.create_stream("orders")
    before = sockets(hub)
    host, port = hub.web[0].url.removeprefix("http://").split(":")
    ask = (
        "GET /v1/streams/orders/events?from=now HTTP/1.1\r\nHost: hub\r\n"
        f"Authorization: Bearer {zone.admin}\r\nAccept: {SSE}\r\n\r\n"
    ).encode()
    allowed, more = limits.SOCKETS_PER_CLIENT_MAX, 50
    writers: list[asyncio.StreamWriter] = []

    async def opened() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, int(port))
        writers.append(writer)
        return reader, writer

    async def status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        writer.write(ask)
        found = int((await reader.readline()).split()[1])
        return await status(*await opened()) if found == 503 else found  # busy: again, as it says

    try:
        pairs = await asyncio.gather(*(opened() for _ in range(allowed + more)))
        statuses = Counter(await asyncio.gather(*(status(*pair) for pair in pairs)))
        assert statuses == {200: allowed, 429: more}
    finally:
        for writer in writers:
            writer.close()
    await until(lambda: sockets(hub) <= before)


async def test_readers_of_a_killed_process_are_not_counted_any_more(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    before = sockets(hub)
    web = hub.web[1]
    async with zone.client("listen:*", web=1) as reader:
        listening = aiter(reader.listen("orders", start="oldest"))
        zone.emit("orders", numbered(1, 1))
        await anext(listening)
        assert sockets(hub) == before + 1
        web.kill()
        try:
            assert sockets(hub) <= before
        finally:
            web.start()
