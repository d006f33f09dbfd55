"""The deletion of event types and channels over the API: announced, withdrawn, and what remains for
stored events.
"""

from typing import Any

from tests.acceptance.delivery.test_stream_deletion import ask
from tests.acceptance.wire import Session, session, until
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "measured", "attributes": {"n": 1}}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TYPE = "types/shop/measured"


async def announced(system: Session, *types: str) -> list[dict[str, Any]]:
    """Receive the next announcements of the types' kind; return their attributes."""
    kind = types[0].partition(".")[0]
    found: list[dict[str, Any]] = []
    while len(found) < len(types):
        [message] = await system.events(1)
        event = message["event"]
        if event["type"].startswith((f"{kind}.deletion", f"{kind}.deleted")):
            assert event["type"] == types[len(found)], event
            found.append(event["attributes"])
    return found


async def test_events_of_a_deleted_type_are_undeclared_and_its_versions_remain(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("strict", undeclared="refuse")
    assert ask(zone, "PUT", TYPE, {"schema": SCHEMA}).status == 201
    assert ask(zone, "PUT", "types/shop/sub", {"schema": {}, "parent": "measured"}).status == 201
    await until(lambda: zone.emit("strict", EVENT).status == 200)
    async with session(hub, zone.admin, web=1) as system:
        await system.listen("system")
        used = ask(zone, "DELETE", TYPE).refused(409, "type_in_use")
        assert used["subtypes"] == ["sub"]
        assert ask(zone, "DELETE", "types/shop/sub?grace_s=0").status == 202
        await announced(system, "type.deletion.scheduled", "type.deleted")
        scheduled = ask(zone, "DELETE", TYPE)
        assert scheduled.status == 202
        ends = scheduled.json["deletes_at"]
        subtype = {"schema": {}, "parent": "measured"}
        for name, body in (("measured", {"schema": {}}), ("new", subtype)):
            problem = ask(zone, "PUT", f"types/shop/{name}", body).refused(409, "type_deleting")
            assert problem["deletes_at"] == ends
        assert zone.emit("strict", EVENT).status == 200
        assert ask(zone, "POST", f"{TYPE}/restore", {}).json["deletes_at"] is None
        await announced(system, "type.deletion.scheduled", "type.deletion.withdrawn")
        ask(zone, "POST", f"{TYPE}/restore", {}).refused(409, "not_deleting")
        assert ask(zone, "DELETE", f"{TYPE}?grace_s=0").status == 202
        [_, deleted] = await announced(system, "type.deletion.scheduled", "type.deleted")
        assert deleted.pop("by") == {"kind": "hub"}
        assert deleted == {"zone": zone.name, "domain": "shop", "type": "measured"}
    await until(lambda: zone.emit("strict", EVENT).status == 422)
    zone.emit("strict", EVENT).refused(422, "undeclared_type")
    ask(zone, "GET", TYPE).refused(404, "unknown_type")
    assert ask(zone, "GET", f"{TYPE}/1").json["schema"] == SCHEMA
    assert ask(zone, "GET", "types").json["items"] == []
    assert ask(zone, "GET", "streams/strict/events/1").json["version"] == "1"
    again = ask(zone, "PUT", TYPE, {"schema": {**SCHEMA, "required": ["n"]}, "evolution": "none"})
    assert (again.status, again.json["version"], again.json["deletes_at"]) == (201, "2", None)
    await until(lambda: zone.emit("strict", EVENT).status == 200)


async def test_the_bit_of_a_deleted_channel_is_not_given_to_another(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("orders")
    zone.define_channel("disk", 3)
    event = {**EVENT, "channels": ["disk"]}
    assert zone.emit("orders", event).status == 200
    stranger = hub.new_zone()
    hub.call("DELETE", "/v1/channels/disk", key=stranger.admin).refused(404, "not_found")
    weak = zone.key("emit:*", "listen:*", "manage:orders")
    hub.call("DELETE", "/v1/channels/disk", key=weak).refused(403, "forbidden")
    async with session(hub, zone.admin, web=1) as system:
        await system.listen("system")
        assert ask(zone, "DELETE", "channels/disk").json["deletes_at"]
        assert zone.emit("orders", event).status == 200
        assert ask(zone, "POST", "channels/disk/restore", {}).json["deletes_at"] is None
        assert ask(zone, "DELETE", "channels/disk?grace_s=0").status == 202
        types = ("channel.deletion.scheduled", "channel.deletion.withdrawn")
        await announced(system, *types, "channel.deletion.scheduled", "channel.deleted")
    for web in hub.web:
        await until(lambda: zone.emit("orders", event, url=web.url).status == 400)  # noqa: B023
    zone.emit("orders", event).refused(400, "unknown_channel")
    assert [one["name"] for one in ask(zone, "GET", "channels").json["items"]] == ["default"]
    assert ask(zone, "GET", "streams/orders/events/1").json["channels"] == ["disk"]
    other = ask(zone, "PUT", "channels/other", {"mask": "8"}).refused(409, "channel_conflict")
    assert "disk" in other["detail"]
    ask(zone, "PUT", "channels/disk", {"mask": "16"}).refused(409, "channel_conflict")
    zone.define_channel("disk", 3)
    assert zone.emit("orders", event).status == 200
