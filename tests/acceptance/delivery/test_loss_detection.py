"""Loss detection by `prev` (EMC-05). A relay between hub and client drops chosen frames."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from eventhub_client.remote import HubClient
from eventhub_client.types import LossDetected
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from eventhub.base import limits
from tests.acceptance.wire import numbered
from tests.busy import stretched
from tests.live import LiveHub, LiveZone

Drops = Callable[[dict[str, Any]], bool]


class Relay:
    """Relays messages between one client and the hub, except the frames that `drops` selects."""

    def __init__(self, hub: LiveHub, drops: Drops) -> None:
        self._hub = hub
        self._drops = drops
        self.dropped: list[dict[str, Any]] = []
        self.pings = asyncio.Event()  # a ping of the hub has come by
        self.url = ""

    async def relay(self, client: ServerConnection) -> None:
        assert client.request is not None
        headers = {"Authorization": client.request.headers["Authorization"]}
        async with connect(self._hub.ws_url, additional_headers=headers, max_size=None) as hub:
            back = asyncio.create_task(self._to_client(hub, client))
            try:
                async for message in client:
                    await hub.send(message)
            except ConnectionClosed:
                pass
            finally:
                back.cancel()

    async def _to_client(self, hub: ClientConnection, client: ServerConnection) -> None:
        async for frame in hub:
            message = json.loads(frame)
            if message["op"] == "ping":
                self.pings.set()
            if self._drops(message):
                self.dropped.append(message)
            else:
                await client.send(frame)


@asynccontextmanager
async def relay(hub: LiveHub, drops: Drops) -> AsyncIterator[Relay]:
    made = Relay(hub, drops)
    async with serve(made.relay, "127.0.0.1", 0, subprotocols=["eventhub.v1.json"]) as server:  # type: ignore[list-item]
        port = next(iter(server.sockets)).getsockname()[1]
        made.url = f"http://127.0.0.1:{port}"
        yield made


def event_of(sequence: int) -> Drops:
    return lambda message: message["op"] == "event" and message["sequence"] == sequence


async def listen(url: str, key: str, count: int, **interest: Any) -> list[int]:
    """Return the sequences of the next events, through the client library."""
    seen: list[int] = []
    async with (
        HubClient(url, key) as client,
        aclosing(client.listen("orders", start="oldest", **interest)) as events,  # type: ignore[type-var]
    ):
        async for delivered in events:
            seen.append(delivered.sequence)
            if len(seen) == count:
                break
    return seen


def emit_masks(zone: LiveZone, *masks: int) -> None:
    zone.create_stream("orders")
    zone.emit("orders", [{**numbered(1, 1)[0], "mask": mask} for mask in masks])


@pytest.mark.req("EMC-05")
@pytest.mark.parametrize("mask", [None, 1])
async def test_a_client_detects_the_frame_that_a_relay_dropped(
    hub: LiveHub, zone: LiveZone, mask: int | None
) -> None:
    emit_masks(zone, 1, 2, 1, 1, 2, 1)
    async with relay(hub, event_of(3)) as between:
        with pytest.raises(LossDetected) as caught:
            await listen(between.url, zone.admin, 6, mask=mask)
    assert [message["sequence"] for message in between.dropped] == [3]
    assert (caught.value.known, caught.value.prev) == (2 if mask is None else 1, 3)


@pytest.mark.req("EMC-05")
async def test_filtered_events_are_not_taken_for_lost_ones(hub: LiveHub, zone: LiveZone) -> None:
    emit_masks(zone, 2, 1, 2, 2, 1, 1, 2, 2, 2, 1)
    async with relay(hub, lambda message: False) as between:
        assert await listen(between.url, zone.admin, 4, mask=1) == [2, 5, 6, 10]


@pytest.mark.req("EMC-05")
async def test_a_ping_has_the_position_of_a_filtered_reader_and_its_loss_is_detected(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Two readers wait for mask 1 while only other events arrive. Then the first ping arrives,
    which one of them loses, and then the matching event.
    """
    emit_masks(zone, 2, 2, 2)

    async def one(drops: Drops) -> tuple[Relay, list[int]]:
        async with relay(hub, drops) as between:
            waiting = asyncio.create_task(listen(between.url, zone.admin, 1, mask=1))
            async with asyncio.timeout(limits.PING_INTERVAL_S + stretched(5.0)):
                await between.pings.wait()
            pinged.release()
            return between, await waiting

    pinged = asyncio.Semaphore(0)
    kept = asyncio.create_task(one(lambda message: False))
    lost = asyncio.create_task(one(lambda message: message["op"] == "ping"))
    for _ in range(2):
        await pinged.acquire()
    await asyncio.to_thread(zone.emit, "orders", {**numbered(4, 4)[0], "mask": 1})
    assert (await kept)[1] == [4]
    with pytest.raises(LossDetected) as caught:
        await lost
    assert (caught.value.known, caught.value.prev) == (0, 3)
