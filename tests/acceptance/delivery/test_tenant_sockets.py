"""Quotas of sockets, over two web processes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp

from tests.acceptance.eventhub.access.test_tenant_limits import announced_at_last, set_quotas
from tests.live import LiveHub, LiveZone

TAKES_EFFECT_S = 30.0
LOST_S = 60.0  # until the places of a killed process are free
POLL = "/v1/streams/orders/events?from=now&timeout=20"


@asynccontextmanager
async def sockets(key: str) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield session


async def opened(
    session: aiohttp.ClientSession, zone: LiveZone, web: int = 0
) -> aiohttp.ClientWebSocketResponse | None:
    """Open a websocket; return None if it is refused by the quota."""
    try:
        return await session.ws_connect(zone.hub.web[web].ws_url)
    except aiohttp.WSServerHandshakeError as error:
        assert error.status == 429
        return None


async def opened_at_last(
    session: aiohttp.ClientSession, zone: LiveZone, web: int = 0, *, seconds: float = TAKES_EFFECT_S
) -> aiohttp.ClientWebSocketResponse:
    until_s = time.monotonic() + seconds
    while (socket := await opened(session, zone, web)) is None:
        assert time.monotonic() < until_s, "no place became free"
        await asyncio.sleep(0.02)
    return socket


def used(zone: LiveZone, of: str, key: str) -> int:
    found: int = zone.hub.call("GET", "/v1/limits", key=key).json[of]["sockets"]["used"]
    return found


async def wait_for_use(zone: LiveZone, sockets: int, key: str, *, of: str = "client") -> None:
    until_s = time.monotonic() + LOST_S
    while (found := await asyncio.to_thread(used, zone, of, key)) != sockets:
        assert time.monotonic() < until_s, f"{found} sockets, not {sockets}"
        await asyncio.sleep(0.05)


async def wait_until_bounded(zone: LiveZone, key: str) -> None:
    """Wait until every process applies a quota of one socket, and none is open."""
    async with sockets(key) as session:
        for web in range(len(zone.hub.web)):
            until_s = time.monotonic() + TAKES_EFFECT_S
            while True:
                assert time.monotonic() < until_s, "the quota has not taken effect"
                async with AsyncExitStack() as held:
                    first = await opened_at_last(session, zone, web)
                    held.push_async_callback(first.close)
                    second = await opened(session, zone, web)
                    if second is None:
                        break
                    held.push_async_callback(second.close)
    await wait_for_use(zone, 0, key)


async def test_of_many_that_take_the_last_places_in_all_processes_only_these_succeed(
    zone: LiveZone,
) -> None:
    key = zone.key("listen:*", client="shop")
    await asyncio.to_thread(set_quotas, zone, "shop", sockets=1)
    await wait_until_bounded(zone, key)
    await asyncio.to_thread(set_quotas, zone, "shop", sockets=4)
    for _ in range(3):
        await wait_for_use(zone, 0, key)
        async with sockets(key) as session:
            tries = [opened(session, zone, n % 2) for n in range(30)]
            found = [one for one in await asyncio.gather(*tries) if one is not None]
            assert len(found) == 4
            await wait_for_use(zone, 4, key)
            await found[0].close()
            await (await opened_at_last(session, zone, 1)).close()


async def test_a_refusal_says_whose_quota_it_is_and_other_zones_are_not_concerned(
    zone: LiveZone, hub: LiveHub
) -> None:
    zone.create_stream("orders")
    one, two = (zone.key("listen:*", client=name) for name in ("one", "two"))
    await asyncio.to_thread(set_quotas, zone, sockets=1)
    await wait_until_bounded(zone, one)
    other = hub.new_zone()
    async with sockets(one) as session, sockets(two) as second, sockets(other.admin) as stranger:
        first = await opened_at_last(session, zone)
        async with second.get(hub.url + POLL) as answer:
            problem = await answer.json(content_type=None)
            headers = answer.headers
        assert (answer.status, problem["code"]) == (429, "sockets_limited")
        assert (problem["scope"], problem["sockets_max"]) == ("zone", 1)
        assert "close some" in problem["detail"]
        assert headers["ratelimit-policy"] == '"zone";q=1;qu="concurrent-requests"'
        assert headers["ratelimit"] == '"zone";r=0;t=2'
        assert headers["retry-after"] == "2"
        for web in (0, 1, 0):
            socket = await opened(stranger, other, web)
            assert socket is not None
            await socket.close()
        await wait_for_use(zone, 1, zone.admin, of="zone")
        await wait_for_use(zone, 0, two)
        await first.close()
        await (await opened_at_last(second, zone, 1)).close()


async def test_every_listener_over_http_takes_a_place_while_it_is_served(zone: LiveZone) -> None:
    zone.create_stream("orders")
    key = zone.key("listen:*", client="shop")
    await asyncio.to_thread(set_quotas, zone, "shop", sockets=1)
    await wait_until_bounded(zone, key)
    stream = "/v1/streams/orders/events?from=now"
    for path, accept in ((POLL, "application/json"), (stream, "text/event-stream")):
        async with sockets(key) as session:
            headers = {"accept": accept}
            polled = asyncio.create_task(_get(session, zone.hub.url + path, headers))
            await wait_for_use(zone, 1, key)
            assert await opened(session, zone, 1) is None
            polled.cancel()
            await asyncio.gather(polled, return_exceptions=True)
        async with sockets(key) as session:
            await (await opened_at_last(session, zone, 1)).close()
        await wait_for_use(zone, 0, key)


async def _get(session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> bytes:
    async with session.get(url, headers=headers) as answer:
        return await answer.read()


async def test_a_killed_process_frees_the_places_of_its_sockets(zone: LiveZone) -> None:
    key = zone.key("listen:*", client="shop")
    await asyncio.to_thread(set_quotas, zone, "shop", sockets=1)
    await wait_until_bounded(zone, key)
    web = zone.hub.web[1]
    try:
        async with sockets(key) as session:
            held = await opened_at_last(session, zone, 1)  # one without a name would be closed
            assert await opened(session, zone, 0) is None
            assert not held.closed
            await asyncio.to_thread(web.kill)
            socket = await opened_at_last(session, zone, 0, seconds=LOST_S)
            await wait_for_use(zone, 1, key)
            await socket.close()
    finally:
        await asyncio.to_thread(web.start)


async def test_counts_that_a_crash_of_the_database_emptied_are_written_again(
    zone: LiveZone,
) -> None:
    key = zone.key("listen:*", client="shop")
    async with sockets(key) as session:
        socket = await opened_at_last(session, zone)
        await wait_for_use(zone, 1, key)
        zone.hub.sql("TRUNCATE web_processes, socket_counts")
        await wait_for_use(zone, 1, key)
        await socket.close()
    await wait_for_use(zone, 0, key)


async def test_reaching_the_quota_and_being_below_it_again_are_announced(zone: LiveZone) -> None:
    key = zone.key("listen:*", client="shop")
    await asyncio.to_thread(set_quotas, zone, "shop", sockets=1)
    await wait_until_bounded(zone, key)
    async with sockets(key) as session:
        socket = await opened_at_last(session, zone)
        reached = await asyncio.to_thread(announced_at_last, zone, "client.quota_reached")
        assert reached == {
            "zone": zone.name, "client": "shop", "level": "warning", "kind": "sockets",
            "quota": 1, "used": 1, "by": {"kind": "hub"},
        }  # fmt: skip
        await socket.close()
    below = await asyncio.to_thread(announced_at_last, zone, "client.quota_available")
    assert (below["kind"], below["level"], below["used"]) == ("sockets", "info", 0)


async def test_clients_that_leave_while_they_are_answered_free_their_places(
    zone: LiveZone,
) -> None:
    """Regression: their listeners, sessions and places stayed until the process ended."""
    zone.create_stream("orders")
    key = zone.key("listen:*", client="shop")
    listen = b'{"op": "listen", "listener": "a", "stream": "orders", "from": "oldest"}'
    handshake = (
        "GET /v1/ws HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Authorization: Bearer {key}\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    for _ in range(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", zone.hub.web[0].port)
        writer.write(handshake.encode())
        await reader.readuntil(b"hello")
        writer.write(bytes((0x81, 0x80 | len(listen), 0, 0, 0, 0)) + listen)
        writer.close()
    await wait_for_use(zone, 0, key)
