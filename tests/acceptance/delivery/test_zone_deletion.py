"""The deletion of a zone by an operator: announced, withdrawn, and everything in it ended."""

from tests.acceptance.delivery.test_stream_deletion import ask
from tests.acceptance.wire import session, until
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed", "channels": ["disk"]}


def test_a_zone_that_is_to_be_deleted_gets_nothing_new(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.define_channel("disk", 0)
    assert ask(zone, "PUT", "streams/orders", {"hold": "case 7"}).status == 200
    assert ask(zone, "PUT", "applications/till", {"state": "online"}).status == 201
    path = f"/v1/zones/{zone.name}"
    hub.call("DELETE", path, key=zone.admin).refused(403, "forbidden")
    assert hub.operate("DELETE", path).refused(409, "on_hold")["streams"] == ["orders"]
    assert ask(zone, "PUT", "streams/orders", {"hold": None}).status == 200
    scheduled = hub.operate("DELETE", path)
    assert scheduled.status == 202
    ends = scheduled.json["deletes_at"]
    for body in (
        zone.emit("orders", EVENT).refused(409, "stream_deleting"),
        ask(zone, "PUT", "streams/orders", {"hold": "x"}).refused(409, "stream_deleting"),
        ask(zone, "POST", "registrations", {"streams": ["orders"]}).refused(409, "stream_deleting"),
        ask(zone, "PUT", "applications/late", {"state": "online"}).refused(409, "stream_deleting"),
        ask(zone, "PUT", "streams/late", {}).refused(409, "zone_deleting"),
        ask(zone, "POST", "clients", {"name": "late"}).refused(409, "zone_deleting"),
        ask(zone, "PUT", "channels/late", {"mask": "2"}).refused(409, "zone_deleting"),
        ask(zone, "PUT", "types/a/late", {"schema": {}}).refused(409, "zone_deleting"),
    ):
        assert body["deletes_at"] == ends
    assert ask(zone, "GET", "streams/orders").json["deletes_at"] == ends
    restored = hub.operate("POST", f"{path}/restore", {})
    assert (restored.status, restored.json["deletes_at"]) == (200, None)
    hub.operate("POST", f"{path}/restore", {}).refused(409, "not_deleting")
    assert zone.emit("orders", EVENT).status == 200


async def test_a_deleted_zone_ends_with_everything_in_it(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """Another zone is not touched. The operator reads the announcements in `default`."""
    other = hub.new_zone()
    other.create_stream("orders")
    for one in (zone, other):
        one.define_channel("disk", 0)
        assert ask(one, "PUT", "types/shop/order.placed", {"schema": {}}).status == 201
        assert ask(one, "PUT", "applications/till", {"state": "online"}).status == 201
        group = {"applications": ["till"]}
        assert ask(one, "PUT", "application-groups/shop", group).status == 201
    zone.create_stream("orders")
    zone.register({"streams": ["orders"], "attributes": {}, "callback": sink.url("/zone")})
    for one in (zone, other):
        timer = {"stream": "orders", "handle": "daily", "cron": "0 8 * * *"}
        assert ask(one, "POST", "timers", timer).status == 201
        source = {"stream": "orders", "name": "hook", "provider": "github"}
        assert ask(one, "POST", "sources", source).status == 201
        url = {"url": "postgresql://u@h/d", "settings": {"table": "t"}, "kind": "outbox-polling"}
        connector = {"stream": "orders", "name": "shop", **url}
        assert ask(one, "POST", "connectors", connector).status == 201
        await until(lambda: one.emit("orders", EVENT).status == 200)  # noqa: B023
    sink.wait(1, "/zone")
    [(id,)] = hub.sql("SELECT id FROM zones WHERE name = %s", zone.name)
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest")
        assert hub.operate("DELETE", f"/v1/zones/{zone.name}?grace_s=0").status == 202
        await until(lambda: hub.call("GET", "/v1/streams", key=zone.admin).status == 401)
        await reader.socket.wait_closed()
    erased = "SELECT 1 FROM zones WHERE id = %s AND erased_at IS NOT NULL"
    await until(lambda: hub.sql(erased, id) == [(1,)])
    hub.operate("GET", f"/v1/zones/{zone.name}").refused(404, "not_found")
    hub.operate("POST", "/v1/zones", {"name": zone.name}).refused(409, "conflict")
    live = {
        "streams": "zone_id = %s AND erased_at IS NULL",
        "clients": "zone_id = %s AND deleted_at IS NULL",
        "registrations": "zone_id = %s AND deleted_at IS NULL",
        "endpoints": "zone_id = %s AND deleted_at IS NULL",
        "channels": "zone_id = %s",
        "event_types": "zone_id = %s",
        "applications": "zone_id = %s",
        "application_groups": "zone_id = %s",
        "timers": "zone_id = %s",
        "timer_counts": "zone_id = %s",
        "sources": "zone_id = %s",
        "connectors": "zone_id = %s",
    }
    left = {
        name: hub.sql(f"SELECT count(*) FROM {name} WHERE {of}", id)[0][0]
        for name, of in live.items()
    }
    assert left == dict.fromkeys(live, 0)
    assert other.emit("orders", EVENT).status == 200
    assert len(ask(other, "GET", "timers").json["items"]) == 1
    assert len(ask(other, "GET", "sources").json["items"]) == 1
    assert len(ask(other, "GET", "connectors").json["items"]) == 1
    assert ask(other, "GET", "types/shop/order.placed").status == 200
