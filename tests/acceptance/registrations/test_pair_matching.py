"""SUN-03 to SUN-15 through the public API: registered and emitted over REST, delivered over the
websocket. test_matching_work.py has callbacks and the work of the matchers.
"""

from typing import Any

import pytest

from tests.acceptance.wire import Session, session
from tests.live import LiveHub, LiveZone

DOMAIN, TYPE = "cluster", "resource group state"
PAIRS = {"resource group name": "foo", "node": "node", "state": "online"}
NV = {"nv1": "a", "nv2": "b", "nv3": "c"}


def wanting(
    attributes: dict[str, Any], domain: str | None = DOMAIN, type: str | None = TYPE
) -> dict[str, Any]:
    return {"streams": ["cluster"], "domain": domain, "type": type, "attributes": attributes}


def coming(attributes: dict[str, Any], domain: str = DOMAIN, type: str = TYPE) -> dict[str, Any]:
    return {"domain": domain, "type": type, "attributes": attributes}


def some(*names: str) -> dict[str, Any]:
    return {name: NV[name] for name in names}


FIGURE_6 = [wanting(some(*names)) for names in (("nv1",), ("nv1", "nv2"), ("nv1", "nv2", "nv3"))]


@pytest.fixture
def cluster(zone: LiveZone) -> LiveZone:
    zone.create_stream("cluster")
    return zone


async def delivered(reader: Session, count: int) -> list[tuple[int, list[int]]]:
    """Return exactly so many events: their sequences and the registrations that they name."""
    events = await reader.events(count)
    assert await reader.nothing_waits()
    return [(event["sequence"], event["registrations"]) for event in events]


@pytest.mark.req("SUN-03")
async def test_notified_if_and_only_if_the_pairs_are_a_subset(
    hub: LiveHub, cluster: LiveZone
) -> None:
    online, both, colour, offline = cluster.register(
        wanting({"state": "online"}),
        wanting({"state": "online", "node": "node"}),
        wanting({"state": "online", "colour": "red"}),
        wanting({"state": "offline"}),
    )
    ids = [made["id"] for made in (online, both, colour, offline)]
    async with session(hub, cluster.admin, web=1) as reader:
        await reader.listen("cluster", registrations=ids)
        cluster.emit("cluster", coming(PAIRS))
        assert await delivered(reader, 1) == [(1, [online["id"], both["id"]])]


@pytest.mark.req("SUN-04")
async def test_domain_and_type_must_match_too(hub: LiveHub, cluster: LiveZone) -> None:
    [made] = cluster.register(wanting(PAIRS))
    async with session(hub, cluster.admin) as reader:
        await reader.listen("cluster", registrations=[made["id"]])
        cluster.emit("cluster", coming(PAIRS, type="node state"))
        cluster.emit("cluster", coming(PAIRS, domain="node"))
        cluster.emit("cluster", coming(PAIRS))
        assert await delivered(reader, 1) == [(3, [made["id"]])]


@pytest.mark.req("SUN-05")
async def test_a_registration_without_pairs_gets_everything_of_its_gate(
    hub: LiveHub, cluster: LiveZone
) -> None:
    [made] = cluster.register(wanting({}))
    async with session(hub, cluster.admin) as reader:
        await reader.listen("cluster", registrations=[made["id"]])
        cluster.emit("cluster", coming(PAIRS))
        cluster.emit("cluster", coming({}))
        cluster.emit("cluster", coming(PAIRS, type="node state"))
        assert await delivered(reader, 2) == [(1, [made["id"]]), (2, [made["id"]])]


@pytest.mark.req("SUN-06")
async def test_parts_with_separators_are_never_confused(hub: LiveHub, cluster: LiveZone) -> None:
    first, second, *others = cluster.register(
        wanting({"x": 1}, "a", "b:c"),
        wanting({"x": 1}, "a:b", "c"),
        wanting({"c:x": 1}, "a", "b"),
        wanting({"x=1": ""}, "a", "b:c"),
        wanting({"x": "1"}, "a", "b:c"),
        wanting({"x": True}, "a", "b:c"),
    )
    ids = [made["id"] for made in (first, second, *others)]
    async with session(hub, cluster.admin) as reader:
        await reader.listen("cluster", registrations=ids)
        cluster.emit("cluster", coming({"x": 1}, "a", "b:c"))
        cluster.emit("cluster", coming({"x": 1.0}, "a:b", "c"))
        assert await delivered(reader, 2) == [(1, [first["id"]]), (2, [second["id"]])]


@pytest.mark.req("SUN-08")
async def test_totals_are_1_2_3(hub: LiveHub, cluster: LiveZone) -> None:
    made = cluster.register(*FIGURE_6)
    paths = [f"/v1/registrations/{each['id']}" for each in made]
    shown = [hub.call("GET", path, key=cluster.admin).json for path in paths]
    assert [each["pair_count"] for each in shown] == [1, 2, 3]


@pytest.mark.req("SUN-13", "SUN-14", "SUN-15")
async def test_the_worked_example_is_one_notification_and_resets_all_counters(
    hub: LiveHub, cluster: LiveZone
) -> None:
    ev1, ev2, ev3 = (made["id"] for made in cluster.register(*FIGURE_6))
    async with session(hub, cluster.admin, web=1) as reader:
        await reader.listen("cluster", registrations=[ev1, ev2, ev3])
        for names in (("nv1", "nv2"), ("nv1", "nv2"), ("nv1",), ("nv2",), ("nv3",)):
            cluster.emit("cluster", coming(some(*names)))
        assert await delivered(reader, 3) == [(1, [ev1, ev2]), (2, [ev1, ev2]), (3, [ev1])]
