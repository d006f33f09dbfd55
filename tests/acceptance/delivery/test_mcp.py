"""The MCP server: discovery, event types, polls and streams, by the official client."""

import asyncio
from typing import Any

import pytest

from tests.acceptance.mcp import EVENTS, connected, refused
from tests.acceptance.wire import sockets, until
from tests.live import Answer, LiveHub, LiveZone

NAME = "shop::order.placed"
SCHEMA = {
    "type": "object",
    "required": ["total"],
    "properties": {
        "total": {"type": "integer"},
        "country": {"type": "string", "enum": ["NO", "SE"]},
    },
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def shop(zone: LiveZone, **policy: Any) -> None:
    """Declare a type, and create a stream."""
    zone.create_stream("orders", **policy)
    path = "/v1/types/shop/order.placed"
    assert zone.hub.call("PUT", path, {"schema": SCHEMA}, key=zone.admin).status == 201


def order(zone: LiveZone, total: int, country: str = "NO") -> None:
    attributes = {"total": total, "country": country}
    event = {"domain": "shop", "type": "order.placed", "attributes": attributes}
    assert zone.emit("orders", [event, {"domain": "shop", "type": "order.paid"}]).status == 200


def totals(events: list[dict[str, Any]]) -> list[int]:
    return [event["data"]["attributes"]["total"] for event in events]


def post(hub: LiveHub, key: str, message: Any, **headers: str) -> Answer:
    """Send a message to the server as it is, with the headers of a right one."""
    named = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "events/poll"}
    sent = {name: value for name, value in {**named, **headers}.items() if value}
    return hub.call("POST", "/mcp", message, key=key, headers=sent)


def post_old(hub: LiveHub, key: str, message: Any) -> Answer:
    """Send a message as an older client does, without headers and `_meta`."""
    return hub.call("POST", "/mcp", message, key=key)


def poll(**params: Any) -> dict[str, Any]:
    given = {"name": NAME, "arguments": {"stream": "orders"}, "_meta": META, **params}
    return {"jsonrpc": "2.0", "id": "p", "method": "events/poll", "params": given}


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_client_of_either_era_finds_the_event_types(
    hub: LiveHub, zone: LiveZone, mode: str, version: str
) -> None:
    shop(zone)
    async with connected(hub, zone.key("listen:orders"), mode) as mcp:
        assert mcp.client.protocol_version == version
        capabilities = mcp.client.server_capabilities.model_dump()
        assert capabilities["extensions"] == {EVENTS: {}}
        found = (await mcp.ask("events/list"))["events"]
    assert [(one["name"], one["delivery"]) for one in found] == [
        (NAME, ["poll", "push", "webhook"])
    ]
    arguments = found[0]["inputSchema"]["properties"]
    assert arguments["stream"]["enum"] == ["orders"]
    assert arguments["attributes"]["properties"]["country"]["enum"] == ["NO", "SE"]
    assert found[0]["payloadSchema"]["properties"]["attributes"] == SCHEMA


async def test_a_poll_starts_now_and_resumes_at_its_cursor(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone)
    order(zone, 1)
    arguments = {"stream": "orders", "attributes": {"country": "NO"}, "filter": "(> total 1)"}
    async with connected(hub, zone.admin) as mcp:
        first = await mcp.ask("events/poll", name=NAME, arguments=arguments)
        assert (first["events"], first["truncated"], first["hasMore"]) == ([], False, False)
        for total, country in ((2, "NO"), (1, "NO"), (3, "SE"), (4, "NO"), (5, "NO")):
            order(zone, total, country)
        more = {"name": NAME, "arguments": arguments, "cursor": first["cursor"]}
        page = await mcp.ask("events/poll", **more, maxEvents=2)
        assert (totals(page["events"]), page["hasMore"]) == ([2, 4], True)
        rest = await mcp.ask("events/poll", **more | {"cursor": page["cursor"]})
        assert (totals(rest["events"]), rest["hasMore"]) == ([5], False)
        again = await mcp.ask("events/poll", **more)
    assert again["events"] == page["events"] + rest["events"], "ids and contents are stable"
    [event, *_] = again["events"]
    assert event["name"] == NAME
    assert event["data"]["type"] == "order.placed"
    page = hub.call("GET", "/v1/streams/orders/events?from=oldest", key=zone.admin).json
    [stored] = [
        item
        for item in page["events"]
        if event["eventId"] == f"{item['segment']}:{item['sequence']}"
    ]
    assert event["data"] == stored["event"]
    assert event["timestamp"] == stored["appended_at"]


async def test_a_poll_reports_lost_events_as_truncated(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone, durability="transient", retain_events=4)
    async with connected(hub, zone.admin) as mcp:
        given: dict[str, Any] = {"name": NAME, "arguments": {"stream": "orders"}}
        cursor = (await mcp.ask("events/poll", **given))["cursor"]
        for total in range(4):
            order(zone, total)
        page = await mcp.ask("events/poll", **given, cursor=cursor)
        assert (totals(page["events"]), page["truncated"]) == ([2, 3], True)
        after = await mcp.ask("events/poll", **given, cursor=page["cursor"])
        assert (after["events"], after["truncated"]) == ([], False)
        other = "00000000-0000-0000-0000-000000000000:7"
        reset = await mcp.ask("events/poll", **given, cursor=other)
        assert (totals(reset["events"]), reset["truncated"]) == ([2, 3], True)
        recent = await mcp.ask("events/poll", **given, cursor=page["cursor"], maxAgeMs=3_600_000)
        assert recent["truncated"] is False
        new = await mcp.ask("events/poll", **given, cursor=cursor, maxAgeMs=0)
        assert (new["events"], new["truncated"]) == ([], True)


async def test_a_stream_has_stored_and_new_events_until_its_key_ends(
    hub: LiveHub, zone: LiveZone
) -> None:
    shop(zone)
    key = zone.key("listen:orders")
    given: dict[str, Any] = {"name": NAME, "arguments": {"stream": "orders"}}
    async with connected(hub, key) as mcp:
        cursor = (await mcp.ask("events/poll", **given))["cursor"]
        order(zone, 1)
        streaming = asyncio.create_task(mcp.ask("events/stream", **given, cursor=cursor))
        received = mcp.events.received

        def events() -> list[dict[str, Any]]:
            return [params for kind, params in received if kind == "event"]

        await until(lambda: len(events()) == 1)
        for total in (2, 3):
            order(zone, total)
        await until(lambda: len(events()) == 3)
        active = [params for kind, params in received if kind == "active"]
        assert [(one["cursor"], one["truncated"]) for one in active] == [(cursor, False)]
        assert sorted(totals(events())) == [1, 2, 3]
        assert {event["cursor"] for event in events()} == {event["eventId"] for event in events()}
        zone.revoke(key)
        result = await asyncio.wait_for(streaming, 30)
        await until(lambda: received[-1][0] == "terminated")
    [id] = {params["_meta"]["io.modelcontextprotocol/subscriptionId"] for _, params in received}
    assert result["_meta"]["io.modelcontextprotocol/subscriptionId"] == id
    assert received[-1][1]["error"]["code"] == -32024


async def test_streams_of_one_client_have_their_own_ids(hub: LiveHub, zone: LiveZone) -> None:
    """New events are encoded once for all readers that get the same bytes."""
    shop(zone)
    before = sockets(hub)
    async with connected(hub, zone.admin) as mcp:
        given: dict[str, Any] = {"name": NAME, "arguments": {"stream": "orders"}}
        tasks = [asyncio.create_task(mcp.ask("events/stream", **given)) for _ in range(2)]
        await until(lambda: len(mcp.events.received) == 2)
        for total in (1, 2):  # the first one in turns of their own, in which they learn its type
            order(zone, total)
            await until(lambda total=total: len(mcp.events.received) == 2 + 2 * total)  # type: ignore[misc]
        ids = [
            params["_meta"]["io.modelcontextprotocol/subscriptionId"]
            for kind, params in mcp.events.received
            if kind == "event"
        ]
        assert len(set(ids)) == 2
        assert sorted(ids[2:]) == sorted(ids[:2])
        for task in tasks:
            task.cancel()
        await until(lambda: sockets(hub) == before)


async def test_another_zone_sees_nothing(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone)
    order(zone, 1)
    other = hub.new_zone()
    async with connected(hub, other.admin) as mcp:
        assert (await mcp.ask("events/list"))["events"] == []
        with refused() as error:
            await mcp.ask("events/poll", name=NAME, arguments={"stream": "orders"})
        assert (error.value.code, error.value.data["kind"]) == (-32023, "event")
        shop(other)
        named = {"jsonrpc": "2.0", "id": 1, "method": "events/list"}
        # a declaration takes effect within a second
        await until(lambda: bool(post_old(hub, other.admin, named).json["result"]["events"]))
        page = await mcp.ask("events/poll", name=NAME, arguments={"stream": "orders"})
        foreign = f"{page['cursor'].partition(':')[0]}:0"
        page = await mcp.ask(
            "events/poll", name=NAME, arguments={"stream": "orders"}, cursor=foreign
        )
        assert page["events"] == []
    async with connected(hub, zone.key("listen:others", client="narrow")) as mcp:
        assert (await mcp.ask("events/list"))["events"] == []
        with refused() as error:
            await mcp.ask("events/poll", name=NAME, arguments={"stream": "orders"})
        assert (error.value.code, error.value.data["code"]) == (-32024, "forbidden")


def test_wrong_parameters_are_refused_with_their_position(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone)
    for params, code, field in (
        ({"name": "shop::nothing"}, -32023, None),
        ({"name": 7}, -32602, "name"),
        ({"arguments": {}}, -32602, "arguments.stream"),
        ({"arguments": {"stream": "orders", "color": 1}}, -32602, "arguments.color"),
        ({"arguments": {"stream": "orders", "filter": "(> total"}}, -32602, "arguments.filter"),
        ({"arguments": {"stream": "nothing"}}, -32023, None),
        ({"arguments": {"stream": "or\0ders"}}, -32602, "arguments.stream"),
        (
            {"arguments": {"stream": "orders", "filter": "(= a 1)" * 9_000}},
            -32602,
            "arguments.filter",
        ),
        ({"cursor": "abc"}, -32602, "cursor"),
        ({"maxEvents": 0}, -32602, "maxEvents"),
        ({"maxAgeMs": -1}, -32602, "maxAgeMs"),
    ):
        answer = post(hub, zone.admin, poll(**params))
        error = answer.json["error"]
        assert (error["code"], answer.json["id"]) == (code, "p"), error
        assert error["data"].get("position", {}).get("field") == field, error
        assert answer.status == (400 if code == -32602 else 200)


def test_wrong_messages_are_refused(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone)
    right = poll()
    for message, headers, status, code in (
        (b"{", {}, 400, -32700),
        ([right], {}, 400, -32600),
        ({**right, "jsonrpc": "1.0"}, {}, 400, -32600),
        ({**right, "id": None}, {}, 400, -32600),
        ({**right, "id": "x" * 201}, {}, 400, -32600),
        ({**right, "params": {}}, {}, 400, -32602),
        (right, {"Mcp-Method": "tools/call"}, 400, -32020),
        (right, {"Mcp-Method": ""}, 400, -32020),
        (right, {"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
        ({**right, "method": "events/no"}, {"Mcp-Method": "events/no"}, 404, -32601),
    ):
        answer = post(hub, zone.admin, message, **headers)
        assert (answer.status, answer.json["error"]["code"]) == (status, code), answer
    later = {**META, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    answer = post(hub, zone.admin, poll(_meta=later), **{"MCP-Protocol-Version": "2027-01-01"})
    assert (answer.status, answer.json["error"]["code"]) == (400, -32022)
    assert answer.json["error"]["data"]["supported"][0] == "2026-07-28"
    notified = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(hub, zone.admin, notified).status == 202
    hub.call("GET", "/mcp", key=zone.admin).refused(405, "method_not_allowed")
    post(hub, "", right).refused(401, "unauthenticated")
    post(hub, zone.admin, right, Origin="https://evil.example").refused(403, "origin_not_allowed")
    long = poll(arguments={"stream": "x" * 300_000})
    post(hub, zone.admin, long).refused(413, "body_too_large")


async def test_a_quota_of_sockets_bounds_polls(hub: LiveHub, zone: LiveZone) -> None:
    shop(zone)
    assert hub.operate("PUT", f"/v1/limits?zone={zone.name}", {"sockets": 1}).status == 200
    key = zone.key("listen:*", client="bounded")
    async with connected(hub, key) as mcp:
        given: dict[str, Any] = {"name": NAME, "arguments": {"stream": "orders"}}
        streaming = asyncio.create_task(mcp.ask("events/stream", **given))
        await until(lambda: len(mcp.events.received) == 1)
        answer = post(hub, key, poll())
        streaming.cancel()
    error = answer.json["error"]
    assert (answer.status, error["code"], error["data"]["code"]) == (429, -32025, "sockets_limited")
    assert int(answer.headers["retry-after"]) * 1_000 == error["data"]["retryAfterMs"]
