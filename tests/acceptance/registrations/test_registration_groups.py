"""RDY-07: registrations in a group are suspended and resumed together, by one row."""

import time

import pytest

from tests.busy import stretched
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed"}
GROUPS = "/v1/registration-groups"
MEMBERS = 10_000
PER_REQUEST = 1_000
CALL_S_MAX = 2.0  # a call that wrote a row for each member would take longer


TABLES = (
    *("registrations", "registration_versions", "registration_groups", "group_streams"),
    *("registration_owners", "suspensions", "barriers", "expensive_filters"),
)


def rows_of(hub: LiveHub, since: int = 0) -> dict[str, int]:
    """Return for each table of registrations the rows that a transaction from `since` on wrote."""
    query = "SELECT count(*) FROM {} WHERE xmin::text::bigint >= %s"
    return {table: hub.sql(query.format(table), since)[0][0] for table in TABLES}


def suspend(zone: LiveZone, path: str, suspended: bool) -> dict[str, int]:
    """Suspend or resume a group in one call; return the rows that it wrote, by table."""
    hub = zone.hub
    before, [(since,)] = rows_of(hub), hub.sql("SELECT pg_current_xact_id()::text::bigint")
    began = time.monotonic()
    answer = hub.call("PATCH", path, {"suspended": suspended}, key=zone.admin)
    assert time.monotonic() - began < stretched(CALL_S_MAX)
    assert (answer.status, answer.json["suspended"]) == (200, suspended)
    written = rows_of(hub, since)
    after = rows_of(hub)
    assert all(after[table] >= before[table] for table in TABLES), "nothing is deleted"
    return {table: count for table, count in written.items() if count}


@pytest.mark.req("RDY-07")
def test_ten_thousand_registrations_are_suspended_by_one_row_and_one_call(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """One suspension and its barrier are written, for ten members and for ten thousand alike."""
    zone.create_stream("orders")
    path = f"/{zone.name}"
    endpoint = zone.endpoint(sink.url(path))["id"]
    groups = {
        name: f"{GROUPS}/{hub.call('POST', GROUPS, {'name': name}, key=zone.admin).json['id']}"
        for name in ("all", "few")
    }
    item = {"streams": ["orders"], "group": "all", "endpoint": endpoint}
    registrations: list[int] = []
    for _ in range(MEMBERS // PER_REQUEST):
        registrations += [one["id"] for one in zone.register(*[item] * PER_REQUEST)]
    zone.register({**item, "suspended": True})
    zone.register(*[{"streams": ["orders"], "group": "few"}] * 10)
    assert hub.call("GET", groups["all"], key=zone.admin).json["registrations"] == MEMBERS + 1
    zone.emit("orders", EVENT)
    [called] = sink.wait(1, path)
    assert (called.json["sequence"], called.json["registrations"]) == (1, registrations)
    one_row = {"suspensions": 1, "barriers": 1}
    assert suspend(zone, groups["few"], True) == suspend(zone, groups["all"], True) == one_row
    assert suspend(zone, groups["all"], True) == {}, "it is suspended already"
    zone.emit("orders", EVENT)
    assert suspend(zone, groups["all"], False) == one_row
    zone.emit("orders", EVENT)
    [_, called] = sink.wait(2, path)
    assert (called.json["sequence"], called.json["registrations"]) == (3, registrations)
    found = hub.sql("SELECT sequence FROM deliveries WHERE endpoint_id = %s", endpoint)
    assert sorted(found) == [(1,), (3,)], "0 matches while the group is suspended"


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
