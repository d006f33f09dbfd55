"""RDY-07: registrations in a group are suspended and resumed together, by one row."""

import pytest

from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed"}
GROUPS = "/v1/registration-groups"
MEMBERS = 10_000
PER_REQUEST = 1_000


@pytest.mark.req("RDY-07")
async def test_ten_thousand_registrations_are_suspended_by_one_row_and_one_call(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    made = hub.call("POST", GROUPS, {"name": "all"}, key=zone.admin)
    assert made.status == 201, made
    path = f"{GROUPS}/{made.json['id']}"
    item = {"streams": ["orders"], "group": "all"}
    tickets: list[int] = []
    for _ in range(MEMBERS // PER_REQUEST):
        tickets += [one["id"] for one in zone.register(*[item] * PER_REQUEST)]
    [own] = zone.register({**item, "suspended": True})
    assert own["group"] == "all"
    assert hub.call("GET", path, key=zone.admin).json["registrations"] == MEMBERS + 1
    watched = [*tickets[:3], *tickets[-3:], own["id"]]

    count = "SELECT count(*) FROM {}".format  # rows of the table
    before = [hub.sql(count(name)) for name in ("registration_versions", "suspensions")]
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("orders", registrations=watched)
        for suspended in (True, True, False):
            changed = hub.call("PATCH", path, {"suspended": suspended}, key=zone.admin)
            assert (changed.status, changed.json["suspended"]) == (200, suspended)
            zone.emit("orders", EVENT)
        [event] = await reader.events(1)
        assert await reader.nothing_waits()
    assert (event["sequence"], event["registrations"]) == (3, watched[:-1])  # it stays suspended
    after = [hub.sql(count(name)) for name in ("registration_versions", "suspensions")]
    assert (after[0], after[1][0][0] - before[1][0][0]) == (before[0], 1)


def test_a_group_belongs_to_its_client_and_is_deleted_when_no_registration_names_it(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    zone.create_stream("secret")
    key = zone.key("listen:orders", client="shop")
    made = hub.call("POST", GROUPS, {"name": "night", "suspended": True}, key=key)
    path = f"{GROUPS}/{made.json['id']}"
    assert made.json["suspended"]
    assert made.headers["etag"] == f'"{made.json["changed"]}"'
    hub.call("POST", GROUPS, {"name": "night"}, key=key).refused(409, "group_exists")
    stranger = zone.key("listen:*", client="stranger")
    hub.call("PATCH", path, {"suspended": False}, key=stranger).refused(404, "unknown_group")
    body = {"streams": ["orders"], "group": "night"}
    hub.call("POST", "/v1/registrations", body, key=stranger).refused(404, "unknown_group")
    [one] = zone.register(body, key=key)
    listed = hub.call("GET", "/v1/registrations?group=night", key=key).json["items"]
    assert [item["id"] for item in listed] == [one["id"]]
    hub.call("DELETE", path, key=key).refused(409, "group_in_use")
    # what is in a stream that the key may not hear is not for it to resume
    both = zone.key("listen:*", client="shop")
    [other] = zone.register({**body, "streams": ["secret"]}, key=both)
    hub.call("PATCH", path, {"suspended": False}, key=key).refused(403, "forbidden")
    stale = {"If-Match": made.headers["etag"]}
    resumed = hub.call("PATCH", path, {"suspended": False}, key=both, headers=stale)
    assert (resumed.status, resumed.json["suspended"]) == (200, False)
    hub.call("PATCH", path, {"suspended": True}, key=both, headers=stale).refused(412, "changed")
    announced = hub.call(
        "GET", f"/v1/streams/system/events/{resumed.json['changed']}", key=zone.admin
    )
    assert announced.json["type"] == "registration_group.changed"
    attributes = announced.json["attributes"]
    assert (attributes["name"], attributes["suspended"]) == ("night", False)
    assert attributes["streams"] == ["orders", "secret"]
    assert hub.call("DELETE", f"/v1/registrations/{other['id']}", key=both).status == 204
    moved = hub.call("PATCH", f"/v1/registrations/{one['id']}", {"group": None}, key=key)
    assert (moved.json["group"], moved.json["version"]) == (None, 2)
    assert hub.call("DELETE", path, key=key).status == 204
    hub.call("GET", path, key=key).refused(404, "unknown_group")
    assert hub.call("GET", GROUPS, key=zone.admin).json["items"] == []


def test_a_suspended_group_suspends_registrations_that_join_it_until_it_is_resumed(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """The forwarder that runs does not know the group before its first registration."""
    endpoint = zone.endpoint(sink.url("/joins"))["id"]
    for name in ("orders", "returns"):
        zone.create_stream(name)
        zone.register({"streams": [name], "type": "first", "endpoint": endpoint})
        zone.emit(name, {**EVENT, "type": "first"})
    sink.wait(2, "/joins")
    group = {"group": "night", "domain": "shop", "endpoint": endpoint}
    made = hub.call("POST", GROUPS, {"name": "night", "suspended": True}, key=zone.admin).json
    zone.register({"streams": ["orders"], **group})
    zone.emit("orders", EVENT)
    path = f"{GROUPS}/{made['id']}"
    assert hub.call("PATCH", path, {"suspended": False}, key=zone.admin).status == 200
    zone.emit("orders", EVENT)
    zone.register({"streams": ["returns"], **group})
    zone.emit("returns", EVENT)
    places = [(one.json["stream"], one.json["sequence"]) for one in sink.wait(4, "/joins")]
    assert sorted(places) == [("orders", 1), ("orders", 3), ("returns", 1), ("returns", 2)]
