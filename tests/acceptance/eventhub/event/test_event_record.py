"""SUN-01: the event record, and equality of whole `name=value` tokens."""

from typing import Any

import pytest

from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone

PAIRS = {"resource group name": "foo", "node": "node", "state": "online"}
RECORD = {"domain": "cluster", "type": "resource group state", "attributes": PAIRS}


@pytest.mark.req("SUN-01")
@pytest.mark.parametrize(
    ("given", "origin"), [({"node": "phys-3"}, "phys-3"), ({}, "sensor")], ids=["given", "default"]
)
def test_a_record_is_stored_with_exactly_its_pairs_and_an_origin_node(
    hub: LiveHub, zone: LiveZone, given: dict[str, Any], origin: str
) -> None:
    zone.create_stream("cluster")
    key = zone.key("emit:cluster", client="sensor")
    assert zone.emit("cluster", {**RECORD, **given}, key=key).status == 200
    stored = hub.call("GET", "/v1/streams/cluster/events/1", key=zone.admin).json
    assert (stored["domain"], stored["type"]) == ("cluster", "resource group state")
    assert stored["attributes"] == PAIRS
    assert len(stored["attributes"]) == 3
    assert stored["node"] == origin
    assert stored["source"] == "sensor"


WANTED: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"attributes": {"state": "online"}}, True),
    ({"attributes": {"state": "online", "node": "node"}}, True),
    ({"attributes": PAIRS, "domain": "cluster", "type": "resource group state"}, True),
    ({"attributes": {"resource group name": "foo"}}, True),
    ({"attributes": {"resource group name": "fo"}}, False),
    ({"attributes": {"resource group name": "foo "}}, False),
    ({"attributes": {"resource group": "foo"}}, False),
    ({"attributes": {"state": "onlin"}}, False),
    ({"attributes": {"state": "ONLINE"}}, False),
    ({"attributes": {"state": "online", "colour": "red"}}, False),
    ({"attributes": {"state": "offline"}}, False),
    ({"attributes": {"state": "online"}, "type": "node state"}, False),
    ({"attributes": {"state": "online"}, "domain": "clust"}, False),
]


@pytest.mark.req("SUN-01")
async def test_values_compare_as_whole_tokens(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("cluster")
    async with session(hub, zone.admin, web=1) as reader:
        for number, (expected, _) in enumerate(WANTED):
            await reader.listen("cluster", name=str(number), **expected)
        zone.emit("cluster", RECORD)
        matching = [str(number) for number, (_, matches) in enumerate(WANTED) if matches]
        events = await reader.events(len(matching))
        assert await reader.nothing_waits()
    assert sorted(event["listener"] for event in events) == sorted(matching)
    assert {event["sequence"] for event in events} == {1}
