"""Connected clients: the list, and the events when one connects and disconnects."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone

TIMEOUT_S = 60.0
READER = "tester"  # reads the events, and so may be connected itself for a moment


def switch(zone: LiveZone, **monitoring: bool) -> None:
    answer = zone.hub.call("PATCH", "/v1/monitoring", monitoring, key=zone.admin)
    assert answer.status == 200, answer
    assert answer.json == {"presence": False, "traces": False, **monitoring}


def connected(zone: LiveZone, key: str = "") -> dict[str, int]:
    answer = zone.hub.call("GET", "/v1/presence", key=key or zone.admin)
    assert answer.status == 200, answer
    return {one["client"]: one["sockets"] for one in answer.json["items"]}


def changes(zone: LiveZone) -> list[tuple[str, str]]:
    path = "/v1/streams/eventhub.presence/events?from=oldest&limit=1000"
    answer = zone.hub.call("GET", path, key=zone.admin)
    assert answer.status == 200, answer
    found = [one["event"] for one in answer.json["events"] if one["event"]["key"] != READER]
    assert all(one["key"] == one["attributes"]["client"] for one in found)
    return [(one["attributes"]["change"], one["key"]) for one in found]


async def until(find: Callable[[], Any], expected: Any) -> None:
    until_s = time.monotonic() + TIMEOUT_S
    while (now := await asyncio.to_thread(find)) != expected:
        assert time.monotonic() < until_s, now
        await asyncio.sleep(0.05)


def let_grace_pass(zone: LiveZone) -> None:
    zone.hub.sql(
        "UPDATE client_presences SET absent_since = now() - interval '1 hour'"
        " WHERE absent_since IS NOT NULL AND zone_id = (SELECT id FROM zones WHERE name = %s)",
        zone.name,
    )


async def test_a_client_joins_with_its_first_socket_in_any_process_and_leaves_after_its_last(
    hub: LiveHub, zone: LiveZone
) -> None:
    switch(zone, presence=True)
    keys = {name: zone.key("listen:*", client=name) for name in ("c7", "c8")}
    async with AsyncExitStack() as open:
        await open.enter_async_context(session(hub, keys["c7"], web=0))
        await until(lambda: changes(zone), [("join", "c7")])
        await open.enter_async_context(session(hub, keys["c7"], web=1))
        await open.enter_async_context(session(hub, keys["c8"], web=1))
        await until(lambda: connected(zone), {"c7": 2, "c8": 1})
        await until(lambda: changes(zone), [("join", "c7"), ("join", "c8")])
        assert connected(zone, keys["c7"]) == {"c7": 2}
    await until(lambda: connected(zone), {})
    async with session(hub, keys["c7"]):  # within the grace time
        await until(lambda: connected(zone), {"c7": 1})
        await until(lambda: absent(zone), ["c8"])
        let_grace_pass(zone)
        await until(lambda: changes(zone), [("join", "c7"), ("join", "c8"), ("leave", "c8")])
        state = hub.call("GET", "/v1/streams/eventhub.presence/state", key=zone.admin).json
        assert {one["key"] for one in state["items"]} - {READER} == {"c7"}


def absent(zone: LiveZone) -> list[str]:
    rows = zone.hub.sql(
        "SELECT client FROM client_presences WHERE absent_since IS NOT NULL"
        " AND zone_id = (SELECT id FROM zones WHERE name = %s)",
        zone.name,
    )
    return [name for (name,) in rows if name != READER]


async def test_without_presence_clients_are_listed_and_nothing_is_announced(
    hub: LiveHub, zone: LiveZone
) -> None:
    key = zone.key("listen:*", client="c7")
    async with session(hub, key):
        await until(lambda: connected(zone), {"c7": 1})
        assert hub.sql(
            "SELECT count(*) FROM client_presences WHERE zone_id ="
            " (SELECT id FROM zones WHERE name = %s)",
            zone.name,
        ) == [(0,)]
    names = [one["name"] for one in hub.call("GET", "/v1/streams", key=zone.admin).json["items"]]
    assert names == ["system"]


async def test_only_managers_read_who_else_is_connected(hub: LiveHub, zone: LiveZone) -> None:
    switch(zone, presence=True)
    key = zone.key("listen:*", "emit:*", client="c7")
    events = "/v1/streams/eventhub.presence/events"
    hub.call("GET", events, key=key).refused(403, "forbidden")
    hub.call("POST", events, {"domain": "d", "type": "t"}, key=key).refused(403, "forbidden")
    hub.call("PATCH", "/v1/monitoring", {"presence": False}, key=key).refused(403, "forbidden")
    hub.call("GET", "/v1/monitoring", key=key).refused(403, "forbidden")
    assert connected(zone, key) == {}
    body = {"presence": 1}
    refused = hub.call("PATCH", "/v1/monitoring", body, key=zone.admin)
    assert refused.refused(400, "invalid_field")["position"] == {"field": "presence"}
