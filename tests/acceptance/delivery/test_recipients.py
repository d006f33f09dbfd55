"""Recipients and formats of events: applications, destinations, transient streams, formats of
bodies.
"""

import json
from typing import Any

import pytest

from tests.acceptance.eventhub.eventlog.test_archive import archive, segments
from tests.acceptance.wire import session
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

BILL = {"domain": "shop", "type": "bill", "attributes": {"n": 1}}


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def sequences(sink: Sink, path: str) -> list[int]:
    return sorted(called.json["sequence"] for called in sink.at(path))


@pytest.mark.req("FOX-03")
async def test_interest_names_an_application(hub: LiveHub, orders: LiveZone, sink: Sink) -> None:
    """By a registration with a callback, by one that a listener names, and by the
    listener itself.
    """
    path = f"/{orders.name}"
    [made] = orders.register(
        {"streams": ["orders"], "application": "billing", "callback": sink.url(path)}
    )
    assert made["application"] == "billing"
    async with session(hub, orders.admin) as named, session(hub, orders.admin) as plain:
        await named.listen("orders", registrations=[made["id"]])
        await plain.listen("orders", application="billing")
        several = [["crm"], ["crm", "billing"], [], ["billing"], ["billings"], ["Billing"]]
        sent = orders.emit("orders", [{**BILL, "application": each} for each in several])
        assert sent.status == 200, sent
        for reader in (named, plain):
            assert [event["sequence"] for event in await reader.events(2)] == [2, 4]
            assert await reader.nothing_waits()
    sink.wait(2, path)
    shown = hub.call("GET", f"/v1/registrations/{made['id']}", key=orders.admin).json
    assert shown["application"] == "billing"
    change = {"application": "crm"}
    answer = hub.call("PATCH", f"/v1/registrations/{made['id']}", change, key=orders.admin)
    assert answer.json["application"] == "crm"
    orders.emit("orders", [{**BILL, "application": each} for each in (["billing"], ["crm"])])
    sink.wait(3, path)
    assert sequences(sink, path) == [2, 4, 8]


@pytest.mark.req("FOX-14")
async def test_an_event_with_destinations_reaches_only_these_clients(
    hub: LiveHub, orders: LiveZone, sink: Sink
) -> None:
    """Two clients request everything, by listeners with and without registrations, in history and
    by callbacks; one event names one of them, another names both, one nobody, and one has no list.
    """
    keys = {name: orders.key("listen:orders", client=name) for name in ("c7", "c8")}
    made = {}
    for name, key in keys.items():
        callback = sink.url(f"/{orders.name}/{name}")
        [made[name]] = orders.register({"streams": ["orders"], "callback": callback}, key=key)
    several: list[dict[str, Any]] = [
        {"destinations": ["c7"]}, {"destinations": ["c7", "c8"]}, {"destinations": ["c9"]}, {},
    ]  # fmt: skip
    expected = {"c7": [1, 2, 4], "c8": [2, 4]}
    async with session(hub, keys["c7"]) as c7, session(hub, keys["c8"]) as c8:
        for reader, name in ((c7, "c7"), (c8, "c8")):
            await reader.listen("orders", name="registered", registrations=[made[name]["id"]])
            await reader.listen("orders", name="plain")
        sent = orders.emit("orders", [{**BILL, **each} for each in several])
        assert sent.status == 200, sent
        for reader, name in ((c7, "c7"), (c8, "c8")):
            found = await reader.events(2 * len(expected[name]))
            for listener in ("registered", "plain"):
                own = [one["sequence"] for one in found if one["listener"] == listener]
                assert own == expected[name]
            assert await reader.nothing_waits()
    for name, key in keys.items():
        page = hub.call("GET", "/v1/streams/orders/events?from=oldest", key=key).json
        assert [one["sequence"] for one in page["events"]] == expected[name]
    sink.wait(3, f"/{orders.name}/c7")
    sink.wait(2, f"/{orders.name}/c8")
    assert sequences(sink, f"/{orders.name}/c7") == [1, 2, 4]
    assert sequences(sink, f"/{orders.name}/c8") == [2, 4]


@pytest.mark.req("EMC-35")
def test_a_transient_stream_refuses_callbacks(hub: LiveHub, zone: LiveZone, sink: Sink) -> None:
    """On a transient stream a registration with an endpoint is refused, with the reason."""
    zone.create_stream("beats", durability="transient")
    zone.create_stream("orders")
    url = sink.url(f"/{zone.name}")
    endpoint = zone.endpoint(url)["id"]

    def post(body: Any) -> Any:
        return hub.call("POST", "/v1/registrations", body, key=zone.admin)

    for more in ({"endpoint": endpoint}, {"callback": url}):
        requested = {"streams": ["orders", "beats"], **more}
        problem = post(requested).refused(422, "transient_stream")
        assert problem["position"] == {"field": "streams.1"}
        problem = post([{"streams": ["orders"]}, requested]).refused(422, "transient_stream")
        assert problem["position"] == {"index": 1, "field": "streams.1"}
    made = post({"streams": ["orders", "beats"]})
    assert made.status == 201, made
    assert made.json["from"].keys() == {"orders"}
    path = f"/v1/registrations/{made.json['id']}"
    change = hub.call("PATCH", path, {"endpoint": endpoint}, key=zone.admin)
    change.refused(422, "transient_stream")
    alone = {"endpoint": endpoint, "streams": ["orders"]}
    assert hub.call("PATCH", path, alone, key=zone.admin).status == 200
    change = hub.call("PATCH", path, {"streams": ["beats"]}, key=zone.admin)
    change.refused(422, "transient_stream")


async def test_a_listener_names_registrations_on_a_transient_stream(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("beats", durability="transient")
    [made] = zone.register({"streams": ["beats"], "attributes": {"n": 1}})
    async with session(hub, zone.admin) as reader:
        await reader.listen("beats", registrations=[made["id"]])
        several = [{**BILL, "attributes": {"n": n}} for n in (2, 1, 2, 1)]
        assert zone.emit("beats", several).status == 200
        assert [event["sequence"] for event in await reader.events(2)] == [2, 4]
        assert await reader.nothing_waits()


def test_an_endpoint_has_a_format(hub: LiveHub, orders: LiveZone, sink: Sink) -> None:
    path = f"/{orders.name}"
    bad = {"url": sink.url(path), "format": "xml"}
    hub.call("POST", "/v1/endpoints", bad, key=orders.admin).refused(400, "invalid_field")
    made = orders.endpoint(sink.url(path), format="cloudevents_structured")
    assert made["format"] == "cloudevents_structured"
    orders.register({"streams": ["orders"], "endpoint": made["id"]})
    orders.emit("orders", {**BILL, "body": {"total": 12}})
    [called] = sink.wait(1, path)
    assert called.verified(made["secret"])
    assert called.headers["content-type"] == "application/cloudevents+json"
    event = json.loads(called.body)
    assert (event["specversion"], event["type"], event["domain"]) == ("1.0", "bill", "shop")
    assert event["data"] == {"total": 12}
    change = {"format": "native"}
    shown = hub.call("PATCH", f"/v1/endpoints/{made['id']}", change, key=orders.admin).json
    assert shown["format"] == "native"
    orders.emit("orders", {**BILL, "body": {"total": 12}})
    native = sink.wait(2, path)[1]
    assert native.json["event"]["body"] == {"total": 12}


def test_an_event_archived_while_its_delivery_is_pending_is_posted(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """The endpoint is disabled until the events have left the database."""
    stream, path = f"orders-{zone.name}", f"/{zone.name}"
    zone.create_stream(stream, segment_events_max=5, archive=True, retain_events=1)
    endpoint = zone.endpoint(sink.url(path), ordered=True)["id"]
    zone.register({"streams": [stream], "endpoint": endpoint})
    switch = f"/v1/endpoints/{endpoint}"
    assert hub.call("PATCH", switch, {"enabled": False}, key=zone.admin).status == 200
    sent = [{**BILL, "attributes": {"n": n}} for n in range(1, 13)]
    assert zone.emit(stream, sent).status == 200
    listed = f"/v1/deliveries?endpoint={endpoint}&state=pending"

    def pending() -> list[Any]:
        items: list[Any] = hub.call("GET", listed, key=zone.admin).json["items"]
        return items

    eventually(lambda: len(pending()) == 12, "12 pending deliveries")
    archive(zone, stream)
    tiers = ["archived", "archived", "live"]
    eventually(
        lambda: [each["tier"] for each in segments(zone, stream)] == tiers, "two archived segments"
    )
    hub.sql(  # as when their partition is dropped
        "DELETE FROM events e USING segments s JOIN streams t ON t.id = s.stream_id"
        " WHERE e.segment_id = s.id AND s.tier = 'archived' AND t.name = %s RETURNING 1",
        stream,
    )
    without_copy = "SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND payload IS NULL"
    assert hub.sql(without_copy, endpoint) == [(12,)]
    shown = hub.call("GET", f"/v1/deliveries/{pending()[-1]['id']}", key=zone.admin).json
    assert shown["event"]["attributes"] == {"n": 1}
    assert hub.call("PATCH", switch, {"enabled": True}, key=zone.admin).status == 200
    posted = sink.wait(12, path)
    assert [called.json["sequence"] for called in posted] == list(range(1, 13))
    assert [called.json["event"]["attributes"]["n"] for called in posted] == list(range(1, 13))
