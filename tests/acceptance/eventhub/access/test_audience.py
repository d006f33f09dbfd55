"""Audiences (OIF-32): an event's audience and a client's groups, on every transport and route."""

from typing import Any

import pytest

from eventhub.base import limits
from eventhub.event import event_pb2
from tests.acceptance.delivery.test_transports_contract import chain, listener_spec, take
from tests.acceptance.eventhub.eventlog.test_archive import archive, segments
from tests.acceptance.transports import Transport, each_transport, server_frames
from tests.acceptance.wire import EVENT, Session, session
from tests.live import Answer, LiveHub, LiveZone
from tests.sink import Sink

PARQUET, PROTOBUF = "application/vnd.apache.parquet", "application/x-protobuf"
FOR_OPS = {**EVENT, "audience": ["ops"]}


def put_into(zone: LiveZone, client: str, *groups: str) -> Answer:
    answer = zone.hub.call(
        "PATCH", f"/v1/clients/{client}", {"groups": list(groups)}, key=zone.admin
    )
    assert answer.status == 200, answer
    return answer


def two_clients(zone: LiveZone) -> tuple[str, str]:
    """Return the keys of a client in the group `ops`, and of one in another group."""
    keys = [zone.key("listen:*", client=name) for name in ("insider", "outsider")]
    put_into(zone, "insider", "ops", "night")
    put_into(zone, "outsider", "dev")
    return keys[0], keys[1]


@pytest.mark.req("OIF-32")
@each_transport
async def test_an_event_with_an_audience_is_only_for_its_groups(
    zone: LiveZone, transport: Transport
) -> None:
    """On every transport; and `prev` still proves to outsiders that no other event was lost."""
    zone.create_stream("orders")
    inside, outside = two_clients(zone)
    several: tuple[dict[str, Any], ...] = (
        {},
        {"audience": ["ops"]},
        {"audience": ["night", "sales"]},
        {"audience": ["ops"], "destinations": ["outsider"]},  # both must let it through
        {"audience": ["Ops"]},
        {"audience": []},
    )
    for fields in several:
        assert zone.emit("orders", {**EVENT, **fields}).status == 200
    interest = {"domain": EVENT["domain"]}
    for more in ({}, interest):  # by what the stored bytes say, and by the event
        spec = listener_spec(zone, **more)
        received = await take(transport, spec._replace(key=outside), 2)
        assert chain(received) == [(0, 1), (1, 6)]
        received = await take(transport, spec._replace(key=inside), 4)
        assert chain(received) == [(0, 1), (1, 2), (2, 3), (3, 6)]
        assert received[1].event["audience"] == ["ops"]


async def received_by(reader: Session, zone: LiveZone, stream: str) -> list[int]:
    """Return which of an event for ops (1) and one for all (2) a listener receives."""
    receipt = zone.emit(stream, [FOR_OPS, EVENT]).json["ranges"][0]
    found: list[int] = []
    while not found or found[-1] != receipt["last"]:
        [event] = await reader.events(1)
        assert event["listener"] == stream
        found.append(event["sequence"])
    return [sequence - receipt["first"] + 1 for sequence in found]


@pytest.mark.req("OIF-32")
async def test_the_groups_of_the_moment_decide(hub: LiveHub, zone: LiveZone, sink: Sink) -> None:
    """By a plain listen, by one that names a registration, and by callback: nothing outside, all of
    it from the change on, and nothing any more after the next.
    """
    for stream in ("orders", "named", "called"):
        zone.create_stream(stream)
    key, path = zone.key("listen:*", client="watch"), f"/{zone.name}"
    [made] = zone.register({"streams": ["named"]}, key=key)
    zone.register({"streams": ["called"], "callback": sink.url(path)}, key=key)
    async with session(hub, key) as plain, session(hub, key, web=1) as named:
        await plain.listen("orders", name="orders")
        await named.listen("named", name="named", registrations=[made["id"]])
        passed = 0
        for groups in ((), ("ops",), ("dev",), ("ops", "dev"), ()):
            put_into(zone, "watch", *groups)
            received = [1, 2] if "ops" in groups else [2]
            zone.emit("called", [FOR_OPS, EVENT])  # a forwarder knows of the change at once
            sink.wait(passed + len(received), path)
            called = sorted(one.json["sequence"] for one in sink.at(path)[passed:])
            base = called[-1] - 2
            assert [sequence - base for sequence in called] == received
            passed += len(received)
            for reader, stream in ((plain, "orders"), (named, "named")):
                while await received_by(reader, zone, stream) != received:
                    pass  # within a second
                assert await received_by(reader, zone, stream) == received


@pytest.mark.req("OIF-32")
def test_no_management_route_reveals_more(hub: LiveHub, zone: LiveZone, sink: Sink) -> None:
    """The state of keys, one event, pages backward, deliveries, segments as they are stored."""
    stream = f"orders-{zone.name}"  # the archive knows only its name
    zone.create_stream(stream, keyed=True, segment_events_max=3, archive=True)
    inside, outside = two_clients(zone)
    path = f"/{zone.name}"
    [made] = zone.register({"streams": [stream], "callback": sink.url(path)}, key=inside)
    for key, fields in (("a", {}), ("b", {"audience": ["ops"]}), ("c", {}), ("b", {})):
        event = {**EVENT, "key": key, "attributes": {"for": key}, **fields}
        assert zone.emit(stream, event).status == 200
    assert zone.emit(stream, {**FOR_OPS, "key": "secret"}).status == 200
    sink.wait(5, path)

    def get(name: str, key: str, **headers: str) -> Answer:
        return hub.call("GET", f"/v1/streams/{stream}/{name}", key=key, headers=headers)

    for key, keys in ((inside, ["a", "b", "c", "secret"]), (outside, ["a", "b", "c"])):
        assert sorted(one["key"] for one in get("state", key).json["items"]) == keys
    assert get("state/secret", inside).status == 200
    get("state/secret", outside).refused(404, "unknown_key")
    assert get("events/2", inside).json["control"]["audience"] == ["ops"]
    get("events/2", outside).refused(404, "unknown_event")
    assert hub.operate("GET", f"/v1/streams/{stream}/events/2?zone={zone.name}").status == 200
    back = get("events?from=now&order=backward", outside).json["events"]
    assert [(one["prev"], one["sequence"]) for one in back] == [(3, 4), (1, 3), (0, 1)]
    listed = hub.call("GET", f"/v1/deliveries?endpoint={made['endpoint']}", key=zone.admin).json
    shown = {
        one["sequence"]: hub.call("GET", f"/v1/deliveries/{one['id']}", key=zone.admin).json
        for one in listed["items"]
    }
    assert {sequence: one["event"] is None for sequence, one in shown.items()} == {
        1: False, 2: True, 3: False, 4: False, 5: True,
    }  # fmt: skip
    segment = segments(zone, stream)[0]["uuid"]
    archive(zone, stream)
    operator = zone.operator_token()
    for key, kinds, received in (
        (operator, f"{PROTOBUF}, {PARQUET};q=0.5", [(0, 1), (1, 2), (2, 3)]),
        (inside, "*/*", [(0, 1), (1, 2), (2, 3)]),
        (outside, "*/*", [(0, 1), (1, 3)]),
        (zone.admin, "*/*", [(0, 1), (1, 3)]),  # who manages the zone may see no more for it
    ):
        answer = get(f"segments/{segment}/raw", key, Accept=kinds)
        frames = [frame.event for frame in server_frames(answer.body)]
        assert [(frame.prev, frame.sequence) for frame in frames] == received
        assert all(event_pb2.Event.FromString(frame.event).domain for frame in frames)
    raw = f"segments/{segment}/raw"
    get(raw, zone.admin, Accept=PARQUET).refused(406, "not_acceptable")
    get(raw, zone.key(f"manage:{stream}"), Accept=PARQUET).refused(403, "forbidden")
    assert get(raw, operator, Accept=PARQUET).status == 200


async def test_an_operator_sees_all_of_the_zone(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    assert zone.emit("orders", [FOR_OPS, {**EVENT, "destinations": ["x"]}, EVENT]).status == 200
    token = hub.operate("POST", f"/v1/connection-tokens?zone={zone.name}", {}).json["token"]
    async with session(hub, token) as reader:
        await reader.listen("orders", start="oldest")
        assert [event["sequence"] for event in await reader.events(3)] == [1, 2, 3]


def test_groups_of_a_client_are_set_shown_and_announced(hub: LiveHub, zone: LiveZone) -> None:
    made = hub.call("POST", "/v1/clients", {"name": "c", "groups": ["b", "a", "b"]}, key=zone.admin)
    assert (made.status, made.json["groups"]) == (201, ["a", "b"])
    changed = put_into(zone, "c", "z", "b")
    assert changed.json["groups"] == ["b", "z"]
    assert hub.call("GET", "/v1/clients/c", key=zone.admin).json == changed.json
    again = put_into(zone, "c", "b", "z", "b")
    assert again.json == changed.json, "the same again changes nothing"
    announced = hub.call(
        "GET", f"/v1/streams/system/events/{changed.json['changed']}", key=zone.admin
    ).json
    attributes = {"zone": zone.name, "client": "c", "groups": ["b", "z"]}
    assert announced["attributes"].pop("by")["client"] == "tester"
    assert (announced["type"], announced["attributes"]) == ("client.changed", attributes)
    path = "/v1/clients/c"
    for groups, code, field in (
        ("a", "invalid_field", "groups"),
        ([7], "invalid_field", "groups.0"),
        (["a", "no name"], "invalid_name", "groups.1"),
        ([f"g{n}" for n in range(limits.AUDIENCES_PER_CLIENT_MAX + 1)], "field_too_long", "groups"),
        (["g" * 201], "field_too_long", "groups.0"),
    ):
        problem = hub.call("PATCH", path, {"groups": groups}, key=zone.admin).refused(400, code)
        assert problem["position"] == {"field": field}
    stale = hub.call(
        "PATCH",
        path,
        {"groups": []},
        key=zone.admin,
        headers={"If-Match": str(made.json["changed"])},
    )
    stale.refused(412, "changed")
    assert hub.call("GET", path, key=zone.admin).json == changed.json
    reader = zone.key("listen:*", "manage:orders", client="d")
    hub.call("PATCH", path, {"groups": ["ops"]}, key=reader).refused(403, "forbidden")
    hub.call("PATCH", "/v1/clients/nobody", {"groups": []}, key=zone.admin).refused(
        404, "not_found"
    )


@pytest.mark.parametrize(
    ("audience", "code"),
    [
        ("ops", "invalid_field"),
        ([""], "invalid_field"),
        ([7], "invalid_field"),
        (["g"] * (limits.LIST_ITEMS_MAX + 1), "field_too_long"),
    ],
)
def test_a_bad_audience_is_refused(zone: LiveZone, audience: Any, code: str) -> None:
    zone.create_stream("orders")
    problem = zone.emit("orders", [EVENT, {**EVENT, "audience": audience}]).refused(400, code)
    assert problem["position"]["index"] == 1
    assert problem["position"]["field"].startswith("audience")
