"""The record of listeners: where each started, and what was delivered to it (FOX-23)."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.acceptance.wire import EVENT, session
from tests.live import LiveHub, LiveZone

PATH = "/v1/clients/tester/listeners"
RECORDED_S = 60.0  # ends are written once a second


def emitted(zone: LiveZone, stream: str, count: int, **more: Any) -> list[int]:
    answer = zone.emit(stream, [{**EVENT, **more} for _ in range(count)])
    assert answer.status == 200, answer
    return [n for run in answer.json["ranges"] for n in range(run["first"], run["last"] + 1)]


def listeners(zone: LiveZone, path: str = PATH, key: str = "") -> list[dict[str, Any]]:
    answer = zone.hub.call("GET", path, key=key or zone.admin)
    assert answer.status == 200, answer
    items: list[dict[str, Any]] = answer.json["items"]
    return items


def recorded(zone: LiveZone, until: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Wait until the client's listeners, newest first, satisfy a condition; return them."""
    end = time.monotonic() + RECORDED_S
    while not until(found := listeners(zone)):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def all_ended(count: int) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda found: len(found) == count and all(one["ended_at"] for one in found)


async def test_a_listener_is_recorded_before_its_client_gets_the_message(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    emitted(zone, "orders", 3)
    async with session(hub, zone.admin, web=1) as reader:
        started = await reader.listen("orders", name="one", start="oldest", type="order.placed")
        [row] = listeners(zone)
        assert (row["stream"], row["name"], row["transport"]) == ("orders", "one", "websocket")
        assert (row["start"], row["after"]) == ("oldest", started["cursor"])
        assert row["ended_at"] is None
        assert "order.placed" in row["filter"]
        await reader.events(3)
        await reader.say("stop", listener="one")
        await reader.hear_op("stopped")
    [row] = recorded(zone, all_ended(1))
    assert (row["delivered_through"]["sequence"], row["delivered_events"], row["end_reason"]) == (
        3,
        3,
        "stopped",
    )


async def test_a_reader_that_disconnected_is_recorded_with_its_deliveries(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    emitted(zone, "orders", 4)
    emitted(zone, "orders", 2, type="order.paid")
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", name="b", start="now")
        await reader.listen("orders", start="oldest", type="order.placed")
        await reader.events(4)
        emitted(zone, "orders", 1)
        await reader.events(2)
    rows = recorded(zone, all_ended(2))
    assert {one["end_reason"] for one in rows} == {"disconnected"}
    assert {
        (one["name"], one["delivered_events"], one["delivered_through"]["sequence"]) for one in rows
    } == {
        ("a", 5, 7),
        ("b", 1, 7),
    }
    assert len({one["node"] for one in rows}) == 1


async def test_server_sent_events_are_recorded(zone: LiveZone) -> None:
    zone.create_stream("orders")
    emitted(zone, "orders", 3)
    url = f"{zone.hub.url}/v1/streams/orders/events?from=oldest"
    headers = {"Authorization": f"Bearer {zone.admin}", "Accept": "text/event-stream"}
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as answer:
        found = b""
        while found.count(b"order.placed") < 3:
            found += await answer.content.readany()
    [row] = recorded(zone, all_ended(1))
    assert (row["transport"], row["delivered_events"], row["end_reason"]) == (
        "sse",
        3,
        "disconnected",
    )


def test_consecutive_polls_are_one_row(zone: LiveZone) -> None:
    zone.create_stream("orders")
    start = "oldest"
    for count in (2, 1, 3):
        emitted(zone, "orders", count)
        page = polled(zone, start)
        assert len(page["events"]) == count
        start = f"{page['cursor']['segment']}:{page['cursor']['sequence']}"
    assert len(listeners(zone)) == 1
    first = f"{page['cursor']['segment']}:1"
    assert len(polled(zone, first)["events"]) == 5  # from another cursor: another row
    [again, row] = listeners(zone)
    assert (again["after"]["sequence"], row["after"]["sequence"]) == (1, 0)
    assert (again["transport"], again["start"], row["start"]) == ("poll", "cursor", "oldest")


def polled(zone: LiveZone, start: str) -> dict[str, Any]:
    path = f"/v1/streams/orders/events?from={start}&timeout=5"
    answer = zone.hub.call("GET", path, key=zone.admin)
    assert answer.status == 200, answer
    page: dict[str, Any] = answer.json
    return page


async def test_a_reader_continues_after_a_gap_in_another_row(zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=1, retain_events=1)
    emitted(zone, "orders", 5)
    zone.hub.web[0].wait_ready()
    segment = zone.hub.sql(
        "SELECT g.uuid::text FROM segments g JOIN streams s ON s.id = g.stream_id"
        " JOIN zones z ON z.id = s.zone_id WHERE z.name = %s AND s.name = 'orders' AND g.first = 1",
        zone.name,
    )[0][0]
    dropped = "SELECT count(*) FROM segments WHERE uuid = %s::uuid AND tier = 'dropped'"
    end = time.monotonic() + 60
    while zone.hub.sql(dropped, segment) != [(1,)]:
        assert time.monotonic() < end
        await asyncio.sleep(0.1)
    url = f"{zone.hub.url}/v1/streams/orders/events?from={segment}:0"
    headers = {"Authorization": f"Bearer {zone.admin}", "Accept": "text/event-stream"}
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as answer:
        found = b""
        while b"order.placed" not in found:
            found += await answer.content.readany()
    [row] = recorded(zone, all_ended(1))
    assert row["start"] == "gap"
    assert row["after"]["sequence"] > 0


async def test_an_operators_listener_is_not_recorded(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    emitted(zone, "orders", 2)
    path = f"/v1/connection-tokens?zone={zone.name}"
    token = hub.operate("POST", path, {}).json["token"]
    before = hub.sql("SELECT count(*) FROM listeners")
    async with session(hub, "", url=f"{hub.ws_url}?access_token={token}") as reader:
        await reader.listen("orders", start="oldest")
        await reader.events(2)
    assert hub.sql("SELECT count(*) FROM listeners") == before


async def test_listeners_of_other_clients_are_hidden(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.create_stream("secrets")
    other = zone.key("listen:orders", client="other")
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders")
        await reader.listen("secrets", name="b")
    async with session(hub, other) as reader:
        await reader.listen("orders")
    path = "/v1/clients/other/listeners"
    assert [one["stream"] for one in listeners(zone, path, other)] == ["orders"]
    assert [one["stream"] for one in listeners(zone, path)] == [
        "orders"
    ]  # a key that manages the zone
    hub.call("GET", PATH, key=other).refused(403, "forbidden")
    narrow = zone.key("listen:orders")
    assert {one["stream"] for one in listeners(zone, PATH, narrow)} == {"orders"}
    hub.call("GET", f"{PATH}?stream=secrets", key=narrow).refused(403, "forbidden")
    stranger = hub.new_zone()
    assert listeners(stranger) == []
    hub.call("GET", path, key=stranger.admin).refused(404, "not_found")


async def test_listeners_are_listed_in_pages(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    async with session(hub, zone.admin) as reader:
        for name in "abcde":
            await reader.listen("orders", name=name)
    names, path = [], f"{PATH}?limit=2&stream=orders"
    while path:
        page = hub.call("GET", path, key=zone.admin).json
        names += [one["name"] for one in page["items"]]
        path = page["next"] and f"{PATH}?limit=2&stream=orders&after={page['next']}"
    assert names == list("edcba")
    hub.call("GET", f"{PATH}?after=x", key=zone.admin).refused(400, "invalid_field")


@pytest.mark.parametrize("name", ["\0", "\ud83d\ude00", "a" * 64])
async def test_any_name_of_a_listener_can_be_recorded(
    hub: LiveHub, zone: LiveZone, name: str
) -> None:
    zone.create_stream("orders")
    async with session(hub, zone.admin) as reader:
        await reader.socket.send(json.dumps({"op": "listen", "listener": name, "stream": "orders"}))
        assert (await reader.hear_op("listening", "error"))["op"] == "listening"
    assert len(listeners(zone)) == 1
