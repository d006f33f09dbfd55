"""What a pattern of a running hub waits for: as the forwarder that runs it has it."""

import time
from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.registrations.test_pattern_groups import create, fields, group
from tests.live import LiveHub, LiveZone


def event(type: str, **attributes: Any) -> dict[str, Any]:
    return {"domain": "d", "type": type, "attributes": attributes}


def consumed(zone: LiveZone, count: int) -> None:
    """Wait until the zone's group has consumed so many events."""
    until = time.monotonic() + 60
    while True:
        [own] = zone.hub.call("GET", "/v1/pattern-groups", key=zone.admin).json["items"]
        if own["consumed"] >= count:
            return
        assert time.monotonic() < until, own
        time.sleep(0.05)


def waiting(zone: LiveZone, id: int) -> dict[str, Any]:
    answer = zone.hub.call("GET", f"/v1/patterns/{id}/waiting", key=zone.admin)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


@pytest.fixture
def running(hub: LiveHub, zone: LiveZone) -> LiveZone:
    hub.start_callbacks()
    zone.create_stream("orders")
    group(zone)
    return zone


@pytest.mark.req("RDY-45")
@pytest.mark.req("RDY-46")
def test_the_tree_of_a_pattern_has_what_is_bound_and_what_it_waits_for(
    hub: LiveHub, running: LiveZone
) -> None:
    zone = running
    made = create(zone, fields(text="({a: A} && {b: B}); {c: C} per $u within 1h")).json
    zone.emit("orders", [event("C", u=1), event("A", u=1), event("A", u=2), event("B", u=1)])
    consumed(zone, 4)
    found = waiting(zone, made["id"])
    assert (found["status"], found["version"], found["is_complete"]) == ("running", 1, True)
    trees = {one["key"]: one["tree"] for one in found["partitions"]}
    assert set(trees) == {1, 2}
    left, right = trees[1]["children"]
    assert (left["status"], right["status"]) == ("matched", "waiting")
    assert [one["sequence"] for one in left["bound"]["a"]] == [2]
    assert left["bound"]["b"][0]["stream"] == "orders"
    assert right["since"]["sequence"] == 4  # the C before does not count
    assert left["expires_at"] is not None
    assert [child["status"] for child in trees[2]["children"]] == ["waiting", "inactive"]


@pytest.mark.req("RDY-46")
def test_a_suspended_pattern_has_no_partial_matches(hub: LiveHub, running: LiveZone) -> None:
    zone = running
    made = create(zone, fields(text="{a: A}; {b: B}")).json
    zone.emit("orders", event("A"))
    consumed(zone, 1)
    assert len(waiting(zone, made["id"])["partitions"]) == 1
    path = f"/v1/patterns/{made['id']}"
    for suspended in (True, False):
        hub.call("PATCH", path, {"suspended": suspended}, key=zone.admin)
    zone.emit("orders", event("X"))
    consumed(zone, 2)
    assert waiting(zone, made["id"])["partitions"] == []


def test_a_state_that_is_too_far_from_its_snapshot_is_unavailable(
    hub: LiveHub, running: LiveZone
) -> None:
    zone = running
    made = create(zone, fields(text="{a: A}; {b: B}")).json
    zone.emit("orders", event("A"))
    consumed(zone, 1)
    hub.sql(
        "INSERT INTO pattern_journal (group_id, first, last, streams, segments, firsts, lasts,"
        " added, removed) SELECT group_id, 1000, 1000 + %s, '{}', '{}', '{}', '{}', '{}', '{}'"
        " FROM patterns WHERE id = %s",
        limits.PATTERN_WAITING_EVENTS_MAX + 1,
        made["id"],
    )
    answer = hub.call("GET", f"/v1/patterns/{made['id']}/waiting", key=zone.admin)
    answer.refused(503, "state_unavailable")
    assert answer.headers["retry-after"] == "10"


def test_what_is_shown_of_a_variable_is_bounded(hub: LiveHub, running: LiveZone) -> None:
    zone = running
    made = create(zone, fields(text="{v[200..*]: A} && {b: B} last 1000")).json
    zone.emit("orders", [event("A") for _ in range(300)])
    consumed(zone, 300)
    [found] = waiting(zone, made["id"])["partitions"]
    shown = [one["sequence"] for one in found["tree"]["bound"]["v"]]
    assert shown == [*range(1, limits.PATTERN_BOUND_SHOWN_MAX + 1)]


def temporal(**more: Any) -> dict[str, Any]:
    text = (
        "(event (u ?u) (where (= @type 'A))) (event (u ?u) (where (= @type 'B)))"
        " (event (u ?u) (where (= @type 'C)))"
    )
    return fields("temporal", text, language="temporal", **more)


@pytest.mark.req("OIF-20")
def test_each_language_shows_what_its_pattern_waits_for(hub: LiveHub, running: LiveZone) -> None:
    """Of a group with patterns in all languages, restored for one of them."""
    zone = running
    endless = fields("endless", "(define (f) (f)) (f)", language="agent")
    counting = fields("counting", "(remember 'n (+ 1 (recall 'n 0)))", language="agent")
    ready = fields("ready", "{v[3..3]: A} per $u")
    made = create(zone, [temporal(), endless, counting, ready]).json["items"]
    zone.emit("orders", [event("A", u=1), event("B", u=1), event("A", u=2)])
    consumed(zone, 3)
    found = [waiting(zone, one["id"]) for one in made]
    [pairs] = found[0]["partitions"]
    assert (pairs["key"], pairs["tree"]["status"]) == (None, "waiting")
    partial = [
        {name: [one["sequence"] for one in values] for name, values in child["bound"].items()}
        for child in pairs["tree"]["children"]
    ]
    assert partial[0] == {"$1": [1], "$2": [2]}
    assert {"$1": [3]} in partial
    assert '(= @type "C")' in pairs["tree"]["children"][0]["element"]
    assert (found[1]["status"], found[1]["partitions"]) == ("suspended", [])
    [agent] = found[2]["partitions"]
    assert (agent["key"], agent["tree"]["status"], agent["tree"]["bound"]) == (None, "waiting", {})
    assert [one["key"] for one in found[3]["partitions"]] == [1, 2]
    assert {one["consumed"] for one in found} == {3}


@pytest.mark.req("OIF-22")
def test_a_pattern_that_saw_recent_events_shows_them(hub: LiveHub, running: LiveZone) -> None:
    zone = running
    zone.emit("orders", [event("A", u=1), event("B", u=1)])
    late = create(zone, temporal(recent=True)).json
    zone.emit("orders", [event("A", u=2)])
    consumed(zone, 3)
    [found] = waiting(zone, late["id"])["partitions"]
    partial = [child["bound"] for child in found["tree"]["children"]]
    assert [one["sequence"] for one in partial[0]["$2"]] == [2]
    zone.emit("orders", [event("C", u=1)])
    consumed(zone, 5)  # the match, too
    path = f"/v1/patterns/{late['id']}"
    assert hub.call("GET", path, key=zone.admin).json["matches"] == 1


def test_only_the_owner_sees_what_a_pattern_waits_for(hub: LiveHub, running: LiveZone) -> None:
    zone = running
    made = create(zone, fields()).json
    path = f"/v1/patterns/{made['id']}/waiting"
    other = zone.key("listen:*", "emit:*", client="other")
    hub.call("GET", path, key=other).refused(404, "unknown_pattern")
    hub.call("GET", path, key=hub.new_zone().admin).refused(404, "unknown_pattern")
    assert hub.call("GET", path, key=zone.admin).status == 200
    hub.call("GET", "/v1/patterns/999999999/waiting", key=zone.admin).refused(
        404, "unknown_pattern"
    )
    assert hub.call("DELETE", f"/v1/patterns/{made['id']}", key=zone.admin).status == 204
    hub.call("GET", path, key=zone.admin).refused(404, "unknown_pattern")
