"""A hub whose forwarders stand on a match index calls back for exactly the registrations that hold,
whatever was made, changed, ended or put to sleep before the index was built and after.
"""

from typing import Any

import pytest

from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.test_bulk import sent
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Called, Sink

GROUPS = "/v1/registration-groups"
COUNT = 60
KINDS = 4


def expected(zone: LiveZone, asleep: bool) -> list[list[int]]:
    """For an event of each kind, the registrations that the API says are live."""
    page = zone.hub.call("GET", "/v1/registrations?limit=1000", key=zone.admin).json
    assert page["next"] is None
    awake = [
        one
        for one in page["items"]
        if not one["suspended"] and not (asleep and one["group"] is not None)
    ]
    return [
        sorted(one["id"] for one in awake if one["attributes"] in ({"n": kind}, {}))
        for kind in range(KINDS)
    ]


def emitted(zone: LiveZone, sink: Sink, path: str, before: int) -> list[list[int]]:
    """One event of each kind, and for which registrations it came."""
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
def test_callbacks_from_an_index_are_those_that_are_owed(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("orders")
    path = f"/{zone.name}"
    endpoint = zone.endpoint(sink.url(path))["id"]
    group = hub.call("POST", GROUPS, {"name": "night"}, key=zone.admin).json["id"]
    wanted = {"op": "create", "streams": ["orders"], "endpoint": endpoint}
    lines = [
        {**wanted, "key": f"k{n}", "attributes": {"n": n % KINDS}}
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
    assert first.ids == COUNT - 2  # the one asleep and the one that ended are not in
    change(
        zone,
        {"op": "change", "key": "k4", "attributes": {"n": 3}},
        {"op": "change", "key": "k2", "suspended": False},
        {"op": "change", "key": "k6", "suspended": True},
        {"op": "end", "key": "k7"},
        {**wanted, "key": "new", "attributes": {}},
    )
    assert hub.call("PATCH", f"{GROUPS}/{group}", {"suspended": True}, key=zone.admin).json
    for process in hub.forwarders:
        process.kill()
    for process in hub.forwarders:
        process.start()
    assert emitted(zone, sink, path, 0) == expected(zone, asleep=True)
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
    assert emitted(zone, sink, path, KINDS) == expected(zone, asleep=False)
