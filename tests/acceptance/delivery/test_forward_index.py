"""The matchers of running forwarders follow every change of registrations in place (SUN-11), lose
those of a deleted client (SUN-09), and are the same after a restart (SUN-10): with SUN's counters,
whose increments show each entry, and with a match index.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from registrations.matching.matcher import Counters
from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.matched_streams import (
    LeaseMoved,
    MatchedStream,
    builds,
    check_costs,
    leases_taken,
    undisturbed,
    wait_equal,
    wait_forwarded,
)
from tests.acceptance.registrations.test_bulk import sent
from tests.acceptance.wire import Emitter
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Called, Sink

GROUPS = "/v1/registration-groups"
NAMES = ("p1", "p2", "p3", "p4")
CLIENTS = ("tester", "leaving", "last")
COUNT = 40
LEAVING = 50


def pairs(number: int) -> dict[str, int]:
    """Return one of the 16 sets of pairs."""
    return {name: 1 for at, name in enumerate(NAMES) if number >> at & 1}


def event(attributes: dict[str, int]) -> dict[str, Any]:
    return {"domain": "shop", "type": "t", "attributes": attributes}


class World:
    """A zone with a stream of each strategy, and clients with an endpoint each. Every registration
    names both streams.
    """

    def __init__(self, zone: LiveZone, sink: Sink) -> None:
        self.zone, self.sink = zone, sink
        self.streams = [MatchedStream(zone, strategy) for strategy in ("counting", "index")]
        self.counting, self.index = self.streams
        self.keys = {name: zone.key("listen:*", client=name) for name in CLIENTS}
        self.paths = {name: f"/{zone.name}/{name}" for name in CLIENTS}
        self.template = {
            name: {
                "streams": [stream.name for stream in self.streams],
                "endpoint": zone.endpoint(sink.url(self.paths[name]), key=self.keys[name])["id"],
            }
            for name in CLIENTS
        }
        self.checked = 0  # callbacks

    def change(self, *lines: dict[str, Any]) -> None:
        """Change registrations of `tester` in bulk."""
        assert sent(self.zone, lines)[-1]["refused"] == 0

    def register(self, client: str, count: int) -> list[int]:
        found = [{**self.template[client], "attributes": pairs(3)}] * count
        return [one["id"] for one in self.zone.register(*found, key=self.keys[client])]

    def registrations(self) -> list[dict[str, Any]]:
        """Return the registrations that the API lists and that are not suspended themselves."""
        page = self.zone.hub.call("GET", "/v1/registrations?limit=1000", key=self.zone.admin).json
        assert page["next"] is None
        return [one for one in page["items"] if not one["suspended"]]

    def check(self, *, is_group_suspended: bool = False) -> None:
        """Check the index by an event of each combination of pairs. The results show that each
        registration is in the entries of its pairs, and the work that these have no others.
        """
        registered = self.registrations()
        combinations = [pairs(number) for number in range(16)]
        sizes = {name: sum(name in one["attributes"] for one in registered) for name in NAMES}
        touched = sum(sizes[name] for given in combinations for name in given)
        cost = Counters(lookups=sum(map(len, combinations)), touched=touched)
        events = [event(given) for given in combinations]
        check_costs({self.counting: (events, cost)})
        self.index.emit(events)
        in_force = [one for one in registered if one["group"] is None or not is_group_suspended]
        self.received(in_force, combinations)

    def received(self, in_force: list[dict[str, Any]], events: list[dict[str, int]]) -> None:
        """Check the callbacks for events of both streams, by stream and client, in order."""
        expected: dict[tuple[str, str], list[list[int]]] = {}
        for given, (client, path) in product(events, self.paths.items()):
            due = [
                one["id"]
                for one in in_force
                if one["client"] == client and one["attributes"].items() <= given.items()
            ]
            for stream in self.streams if due else ():
                expected.setdefault((stream.name, path), []).append(due)
        called = self.next_called(sum(map(len, expected.values())))
        found: dict[tuple[str, str], list[list[int]]] = {}
        for one in sorted(called, key=lambda one: one.json["sequence"]):
            mine = found.setdefault((one.json["stream"], one.path), [])
            mine.append(one.json["registrations"])
        assert found == expected

    def next_called(self, count: int) -> list[Called]:
        """Return the callbacks since the last call, at least so many."""

        def called() -> list[Called]:
            mine = [one for one in self.sink.called if one.path in self.paths.values()]
            return mine[self.checked :]

        eventually(lambda: len(called()) >= count, "the callbacks")
        found = called()
        self.checked += len(found)
        return found

    def versions(self) -> list[dict[str, int]]:
        """Return the present versions of each stream, reported after one more event."""
        for stream in self.streams:
            stream.emit_reported({**event({"unknown": 1}), "destinations": ["last"]})
        return [stream.versions() for stream in self.streams]


@pytest.mark.req("SUN-09", "SUN-10")
@undisturbed
def test_the_index_of_a_running_forwarder_equals_the_one_built_at_its_restart(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    world = World(zone, sink)
    group = grown(world)
    a_client_leaves(world)
    world.register("last", 5)
    world.check(is_group_suspended=True)

    versions, built = world.versions(), builds(hub)["lease"]
    for process in hub.forwarders:
        process.kill()
    hub.start_callbacks()
    wait_forwarded(hub, [stream.id for stream in world.streams])
    assert world.versions() == versions
    assert builds(hub)["lease"] >= built + 2
    world.check(is_group_suspended=True)

    assert hub.call("DELETE", "/v1/clients/last", key=zone.admin).status == 204
    assert hub.call("PATCH", f"{GROUPS}/{group}", {"suspended": False}, key=zone.admin).json
    world.change({"op": "change", "key": "k8", "attributes": pairs(1)}, {"op": "end", "key": "k4"})
    epoch = build(hub, zone, world.index.name)
    eventually(lambda: is_used(hub, epoch), "the next index is taken")
    world.check()


def grown(world: World) -> int:
    """Change registrations in every way, before and after an index is built and used; return the
    group that is suspended at the end.
    """
    zone = world.zone
    group = zone.hub.call("POST", GROUPS, {"name": "night"}, key=world.keys["tester"]).json["id"]
    template = {"op": "create", **world.template["tester"]}
    world.change(
        *(
            {**template, "key": f"k{n}", "attributes": pairs(n % 16)}
            | ({"group": "night"} if n % 5 == 0 else {})
            | ({"report": ["p1"]} if n % 7 == 0 else {})
            for n in range(COUNT)
        )
    )
    world.change(
        {"op": "change", "key": "k1", "attributes": pairs(6)},
        {"op": "change", "key": "k2", "suspended": True},
        {"op": "end", "key": "k3"},
    )
    wait_forwarded(zone.hub, [stream.id for stream in world.streams])
    epoch = build(zone.hub, zone, world.index.name)
    assert epoch.ids == COUNT - 2  # without the suspended one and the one that ended
    eventually(lambda: is_used(zone.hub, epoch), "the index is opened")
    world.change(
        {"op": "change", "key": "k4", "attributes": pairs(12)},
        {"op": "change", "key": "k2", "suspended": False},
        {"op": "change", "key": "k6", "suspended": True},
        {"op": "end", "key": "k7"},
        {**template, "key": "new", "attributes": {}},
    )
    suspended = zone.hub.call(
        "PATCH", f"{GROUPS}/{group}", {"suspended": True}, key=world.keys["tester"]
    )
    assert suspended.json["suspended"]
    return int(group)


def a_client_leaves(world: World) -> None:
    """Register and delete a client's registrations; check that nothing of them remains."""
    hub, admin = world.zone.hub, world.zone.admin
    given = event(pairs(3))
    touched = sum(len(one["attributes"].keys() & pairs(3)) for one in world.registrations())
    before = world.versions()
    ids = world.register("leaving", LEAVING)
    cost = Counters(lookups=2, touched=touched + 2 * LEAVING)
    check_costs({world.counting: (given, cost)})
    world.index.emit(given)
    assert world.versions() == [{**one, "memory": one["memory"] + LEAVING} for one in before]
    assert listed(world.zone, "leaving") == ids
    assert clients(world.zone) == {*CLIENTS}

    assert hub.call("DELETE", "/v1/clients/leaving", key=admin).status == 204
    check_costs({world.counting: (given, Counters(lookups=2, touched=touched))})
    world.index.emit(given)
    assert world.versions() == before
    called = world.next_called(6)  # four for `tester`, and two for the client while it was there
    path = world.paths["leaving"]
    assert [one.json["registrations"] for one in called if one.path == path] == [ids, ids]
    assert clients(world.zone) == {"tester", "last"}
    gone = f"/v1/registrations/{ids[0]}"
    hub.call("GET", gone, key=admin).refused(404, "unknown_registration")
    hub.call("GET", gone, key=world.keys["leaving"]).refused(401, "invalid_credentials")


def clients(zone: LiveZone) -> set[str]:
    items = zone.hub.call("GET", "/v1/clients", key=zone.admin).json["items"]
    return {item["name"] for item in items}


def listed(zone: LiveZone, client: str) -> list[int]:
    """Return a client's registrations, page by page."""
    found: list[int] = []
    after = ""
    while after is not None:
        path = f"/v1/registrations?client={client}&limit=20{after and f'&after={after}'}"
        page = zone.hub.call("GET", path, key=zone.admin).json
        assert all(item["client"] == client for item in page["items"])
        found += [item["id"] for item in page["items"]]
        after = page["next"]
    return found


@pytest.mark.req("SUN-11")
@undisturbed
def test_a_registration_is_added_while_events_flow_without_a_rebuild(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """It matches from the next event on, and the other one misses none. The change of a strategy
    shows that the counter of builds can move.
    """
    streams = [MatchedStream(zone, strategy) for strategy in ("counting", "auto")]
    names = [stream.name for stream in streams]
    paths = [f"/{zone.name}/{name}" for name in ("first", "late")]
    definitions = [
        {"streams": names, "attributes": {"p1": 1}, "endpoint": zone.endpoint(sink.url(path))["id"]}
        for path in paths
    ]
    first, late = paths
    zone.register(definitions[0])
    wait_forwarded(hub, [stream.id for stream in streams])
    with emitting(zone, names) as last:
        sink.wait(4, first)
        taken = leases_taken(hub)
        before, rebuilds = builds(hub), [stream.work().rebuilds for stream in streams]
        [made] = zone.register(definitions[1])
        sink.wait(6, late)
    begin = {name: made["from"][name]["sequence"] for name in names}
    assert all(0 < begin[name] < last[name] - 1 for name in names)
    for path, after in ((first, dict.fromkeys(names, 0)), (late, begin)):
        expected = [
            (name, n) for name in sorted(names) for n in range(after[name] + 1, last[name] + 1)
        ]
        called = sink.wait(len(expected), path)
        assert sorted((one.json["stream"], one.json["sequence"]) for one in called) == expected
    if leases_taken(hub) != taken:
        raise LeaseMoved
    assert builds(hub) == before
    assert [stream.work().rebuilds for stream in streams] == rebuilds
    assert zone.hub.call("PUT", "/v1/streams/auto", {"matching": "counting"}, key=zone.admin).json
    wait_equal(lambda: builds(hub), {**before, "strategy": before.get("strategy", 0) + 1})


@contextmanager
def emitting(zone: LiveZone, streams: list[str]) -> Iterator[dict[str, int]]:
    """Emit to the streams in turn, without a pause, until the block ends; yield the last sequence
    of each.
    """
    last: dict[str, int] = {}
    ended = threading.Event()

    def emit() -> None:
        with Emitter(zone) as emitter:
            while not ended.is_set():
                for stream in streams:
                    [last[stream]] = emitter.numbers(stream, event({"p1": 1}))

    thread = threading.Thread(target=emit)
    thread.start()
    try:
        yield last
    finally:
        ended.set()
        thread.join()
