"""Callbacks of a hub whose forwarders use a match index reach exactly the registrations in force,
whether created, changed, ended or suspended before the index was built or after.
"""

from typing import Any

import pytest

from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.registrations.test_bulk import sent
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Called, Sink

GROUPS = "/v1/registration-groups"
COUNT = 60
KINDS = 4


def expected(zone: LiveZone, suspended: bool) -> list[list[int]]:
    """Return, for an event of each kind, the registrations that the API lists as live."""
    page = zone.hub.call("GET", "/v1/registrations?limit=1000", key=zone.admin).json
    assert page["next"] is None
    active = [
        one
        for one in page["items"]
        if not one["suspended"] and not (suspended and one["group"] is not None)
    ]
    return [
        sorted(one["id"] for one in active if one["attributes"] in ({"n": kind}, {}))
        for kind in range(KINDS)
    ]


def emitted(zone: LiveZone, sink: Sink, path: str, before: int) -> list[list[int]]:
    """Emit one event of each kind; return the registrations that each was delivered for."""
    events = [{"domain": "shop", "type": "t", "attributes": {"n": n}} for n in range(KINDS)]
    assert zone.emit("orders", events).status == 200
    called: list[Called] = sink.wait(before + KINDS, path)[before:]
    by_kind = {one.json["event"]["attributes"]["n"]: one.json["registrations"] for one in called}
    assert len(called) == KINDS
    return [by_kind[kind] for kind in range(KINDS)]


def change(zone: LiveZone, *lines: dict[str, Any]) -> None:
    assert sent(zone, lines)[-1]["refused"] == 0


@pytest.mark.req("SUN-11")
@pytest.mark.req("SUN-10")
def test_callbacks_with_an_index_reach_the_registrations_in_force(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("orders")
    path = f"/{zone.name}"
    endpoint = zone.endpoint(sink.url(path))["id"]
    group = hub.call("POST", GROUPS, {"name": "night"}, key=zone.admin).json["id"]
    template = {"op": "create", "streams": ["orders"], "endpoint": endpoint}
    lines = [
        {**template, "key": f"k{n}", "attributes": {"n": n % KINDS}}
        | ({"group": "night"} if n % 5 == 0 else {})
        | ({"report": ["n"]} if n % 7 == 0 else {})
        for n in range(COUNT)
    ]
    change(zone, *lines)
    change(
        zone,
        {"op": "change", "key": "k1", "attributes": {"n": 0}},
        {"op": "change", "key": "k2", "suspended": True},
        {"op": "end", "key": "k3"},
    )
    first = build(hub, zone)
    assert first.ids == COUNT - 2  # without the suspended one and the one that ended
    change(
        zone,
        {"op": "change", "key": "k4", "attributes": {"n": 3}},
        {"op": "change", "key": "k2", "suspended": False},
        {"op": "change", "key": "k6", "suspended": True},
        {"op": "end", "key": "k7"},
        {**template, "key": "new", "attributes": {}},
    )
    assert hub.call("PATCH", f"{GROUPS}/{group}", {"suspended": True}, key=zone.admin).json
    for process in hub.forwarders:
        process.kill()
    for process in hub.forwarders:
        process.start()
    assert emitted(zone, sink, path, 0) == expected(zone, suspended=True)
    eventually(lambda: is_used(hub, first), "the index is opened")

    second = build(hub, zone)
    eventually(lambda: is_used(hub, second), "the next one is taken")
    assert hub.call("PATCH", f"{GROUPS}/{group}", {"suspended": False}, key=zone.admin).json
    change(
        zone,
        {"op": "change", "key": "k8", "attributes": {"n": 1}},
        {"op": "end", "key": "new"},
        {"op": "end", "key": "k4"},
    )
    assert emitted(zone, sink, path, KINDS) == expected(zone, suspended=False)
