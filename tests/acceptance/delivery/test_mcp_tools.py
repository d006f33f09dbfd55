"""The tools of the MCP server: requests of the API with the caller's rights."""

from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.eventhub.eventlog.test_retention import announced
from tests.acceptance.mcp import connected, refused
from tests.acceptance.wire import until
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from tests.acceptance.mcp_client import McpClient

READS = [
    *("list_streams", "recent_events", "explain_filter", "event_matches", "dry_run_filter"),
    *("dead_letters", "deliveries"),
]
FILTER = {"language": "predicate", "filter": "(> total 1)"}


async def use(mcp: "McpClient", name: str, **arguments: Any) -> Any:
    """Call a tool that succeeds; return its answer."""
    found = await called(mcp, name, **arguments)
    assert not found.is_error, found
    return found.structured_content


async def called(mcp: "McpClient", name: str, **arguments: Any) -> "CallToolResult":
    return await mcp.client.call_tool(name, arguments)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_read_what_the_key_may_read(hub: LiveHub, zone: LiveZone, mode: str) -> None:
    zone.create_stream("orders")
    zone.create_stream("payroll")
    zone.register({"streams": ["orders"], "attributes": {"total": 3}})
    for total in (1, 2, 3):
        zone.emit("orders", {"domain": "a", "type": "b", "attributes": {"total": total}})
    async with connected(hub, zone.key("listen:orders"), mode) as mcp:
        tools = (await mcp.client.list_tools()).tools
        assert [tool.name for tool in tools] == READS
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        streams = await use(mcp, "list_streams")
        assert [one["name"] for one in streams["items"]] == ["orders"]
        recent = await use(mcp, "recent_events", stream="orders", limit=2, **FILTER)
        assert [one["sequence"] for one in recent["events"]] == [3, 2]
        run = await use(mcp, "dry_run_filter", stream="orders", **FILTER)
        assert run["matched"] == 2
        why = await use(mcp, "explain_filter", stream="orders", sequence=1, **FILTER)
        assert (why["matches"], why["tree"]["why"]) == (False, "total is 1, expected > 1")
        who = await use(mcp, "event_matches", stream="orders", sequence=3)
        assert len(who["matches"]) == 1
        forbidden = await called(mcp, "recent_events", stream="payroll")
        assert forbidden.is_error
        assert forbidden.structured_content["code"] == "forbidden"
        wrong = await called(mcp, "recent_events", stream="orders", color="red")
        assert wrong.structured_content["position"] == {"field": "color"}
        missing = await called(mcp, "recent_events")
        assert missing.structured_content["position"] == {"field": "stream"}
        with refused() as error:
            await called(mcp, "retry_delivery", delivery="1.1.1.1")
        assert error.value.code == -32602


async def test_a_manager_sends_a_dead_letter_again(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("orders")
    endpoint = zone.endpoint(sink.url("/"), retry_schedule=[])
    zone.register({"streams": ["orders"], "endpoint": endpoint["id"]})
    sink.answer = lambda request: (500, {})
    zone.emit("orders", {"domain": "a", "type": "b"})
    async with connected(hub, zone.key("manage:*", "listen:*")) as mcp:
        tools = (await mcp.client.list_tools()).tools
        assert [tool.name for tool in tools] == [*READS, "retry_delivery"]
        path = "/v1/dead-letters"
        await until(lambda: bool(hub.call("GET", path, key=zone.admin).json["items"]))
        [group] = (await use(mcp, "dead_letters"))["items"]
        assert (group["endpoint"], group["status"]) == (endpoint["id"], 500)
        sink.answer = lambda request: (200, {})
        [delivery] = group["samples"]
        await use(mcp, "retry_delivery", delivery=delivery)
        states = f"/v1/deliveries/{delivery}"
        await until(lambda: hub.call("GET", states, key=zone.admin).json["state"] == "delivered")
    [resent] = announced(zone, "delivery.resent")
    assert resent["endpoint"] == endpoint["id"]
