"""Deliveries in the management API of a running hub."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.live import LiveHub, LiveZone
from tests.sink import Sink


def finished(
    hub: LiveHub, key: str, endpoint: int, count: int, state: str = "delivered"
) -> list[dict[str, Any]]:
    """Return the endpoint's deliveries once this many are delivered or have ended otherwise."""
    until = time.monotonic() + 60
    while True:
        path = f"/v1/deliveries?endpoint={endpoint}&state={state}"
        answer = hub.call("GET", path, key=key)
        assert answer.status == 200, answer
        if len(answer.json["items"]) >= count:
            items: list[dict[str, Any]] = answer.json["items"]
            return items
        assert time.monotonic() < until
        time.sleep(0.05)


def test_deliveries_of_an_endpoint_come_in_pages_newest_first(zone: LiveZone, sink: Sink) -> None:
    hub, key = zone.hub, zone.admin
    zone.create_stream("orders")
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    [made] = zone.register({"streams": ["orders"], "endpoint": endpoint})
    zone.emit("orders", [{"domain": "shop", "type": "order.placed"}] * 5)
    items = finished(hub, key, endpoint, 5)
    assert [item["sequence"] for item in items] == [5, 4, 3, 2, 1]
    assert items[0].keys() == {
        *("id", "endpoint", "stream", "segment", "sequence", "registrations", "state"),
        *("attempt_count", "last_outcome", "last_status", "next_attempt_at", "created_at"),
        *("resent_at", "finished_at", "gap"),
    }
    assert (items[0]["stream"], items[0]["registrations"]) == ("orders", [made["id"]])
    assert (items[0]["state"], items[0]["attempt_count"]) == ("delivered", 1)
    assert items[0]["next_attempt_at"] is None and items[0]["finished_at"]
    first = hub.call("GET", f"/v1/deliveries?endpoint={endpoint}&limit=3", key=key).json
    path = f"/v1/deliveries?endpoint={endpoint}&limit=3&after={first['next']}"
    second = hub.call("GET", path, key=key).json
    assert [item["sequence"] for item in first["items"]] == [5, 4, 3]
    assert [item["sequence"] for item in second["items"]] == [2, 1]
    assert second["next"] is None
    path = "/v1/deliveries?stream=orders&sequence=3"
    assert [item["id"] for item in hub.call("GET", path, key=key).json["items"]] == [items[2]["id"]]
    path = f"/v1/deliveries?endpoint={endpoint}&state=dead_lettered"
    assert hub.call("GET", path, key=key).json == {"items": [], "next": None}


def test_a_delivery_shows_its_event_and_every_attempt(zone: LiveZone, sink: Sink) -> None:
    zone.create_stream("orders")
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    zone.register({"streams": ["orders"], "endpoint": endpoint})
    zone.emit("orders", {"domain": "shop", "type": "order.placed", "attributes": {"n": 1}})
    [item] = finished(zone.hub, zone.admin, endpoint, 1)
    found = zone.hub.call("GET", f"/v1/deliveries/{item['id']}", key=zone.admin).json
    assert found["event"]["attributes"] == {"n": 1}
    [attempted] = found["attempts"]
    assert (attempted["number"], attempted["outcome"]) == (1, "delivered")
    assert 200 <= attempted["status"] < 300
    assert attempted["url"] == sink.url(f"/{zone.name}")
    assert (
        f"webhook-id: msg_{item['segment'].replace('-', '')}_1_{endpoint}" in attempted["request"]
    )
    assert "webhook-signature" not in attempted["request"]
    assert attempted["response"].startswith(str(attempted["status"]))


def test_a_delivery_shows_the_attempt_of_the_batch_that_it_was_in(
    zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("orders")
    batch = {"events_max": 10, "linger_ms": 1_000}
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"), batch=batch)["id"]
    zone.register({"streams": ["orders"], "endpoint": endpoint})
    for n in range(10):
        zone.emit("orders", {"domain": "shop", "type": "order.placed", "attributes": {"n": n}})
    items = finished(zone.hub, zone.admin, endpoint, 10)
    assert len(sink.at(f"/{zone.name}")) < 10
    shown = [zone.hub.call("GET", f"/v1/deliveries/{item['id']}", key=zone.admin).json
             for item in items]  # fmt: skip
    for each in shown:
        [attempted] = each["attempts"]
        assert (attempted["number"], attempted["outcome"]) == (1, "delivered")
        assert 200 <= attempted["status"] < 300
        assert attempted["url"] == sink.url(f"/{zone.name}")
        assert "webhook-id: batch_" in attempted["request"]
    assert [each["attempt_count"] for each in shown] == [1] * 10


def test_a_delivery_whose_event_expired_before_a_success_is_expired(
    zone: LiveZone, sink: Sink
) -> None:
    sink.answer = lambda _called: (503, {})
    zone.create_stream("orders")
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    zone.register({"streams": ["orders"], "endpoint": endpoint})
    expires_at = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    zone.emit("orders", {"domain": "shop", "type": "order.placed", "expires_at": expires_at})
    sink.wait(1, f"/{zone.name}")
    [item] = finished(zone.hub, zone.admin, endpoint, 1, "expired")
    found = zone.hub.call("GET", f"/v1/deliveries/{item['id']}", key=zone.admin).json
    assert found["finished_at"] > expires_at[:19]
    assert len(found["attempts"]) == found["attempt_count"] == len(sink.at(f"/{zone.name}"))


def test_deliveries_are_visible_to_their_client_and_to_managers(zone: LiveZone, sink: Sink) -> None:
    hub = zone.hub
    zone.create_stream("orders")
    own = zone.key("listen:orders", client="own")
    other = zone.key("listen:orders", client="other")
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"), key=own)["id"]
    zone.register({"streams": ["orders"], "endpoint": endpoint}, key=own)
    zone.emit("orders", {"domain": "shop", "type": "order.placed"})
    [item] = finished(hub, own, endpoint, 1)
    assert finished(hub, zone.admin, endpoint, 1) == [item]
    path = f"/v1/deliveries/{item['id']}"
    hub.call("GET", f"/v1/deliveries?endpoint={endpoint}", key=other).refused(
        404, "unknown_endpoint"
    )
    hub.call("GET", path, key=other).refused(404, "unknown_delivery")
    event = "/v1/deliveries?stream=orders&sequence=1"
    assert hub.call("GET", event, key=other).json["items"] == []
    assert hub.call("GET", path, key=own).status == 200
    assert hub.operate("GET", f"{path}?zone={zone.name}").status == 200
    hub.operate("GET", path).refused(404, "unknown_delivery")


def dead_letter(hub: LiveHub, endpoint: int, sequences: list[int]) -> None:
    """Set deliveries to their state after the last attempt, two hours later."""
    hub.sql(
        "UPDATE deliveries SET state = 'dead_lettered', attempts = 15,"
        " finished_at = now(), claim = NULL"
        " WHERE endpoint_id = %s AND sequence = ANY (%s)",
        *(endpoint, sequences),
    )


def test_failed_deliveries_of_all_endpoints_are_listed(zone: LiveZone, sink: Sink) -> None:
    """No knowledge of the endpoint is needed. A client sees its own dead letters, a zone its own,
    and a key those of streams that it may listen to.
    """
    hub, other = zone.hub, zone.hub.new_zone()
    zone.create_stream("orders")
    zone.create_stream("pay")
    own = zone.key("listen:orders", client="own")
    endpoints = [
        zone.endpoint(sink.url(f"/{zone.name}"), key=key)["id"] for key in (zone.admin, own)
    ]
    for endpoint, key, streams in zip(
        endpoints, (zone.admin, own), (["orders", "pay"], ["orders"]), strict=True
    ):
        zone.register({"streams": streams, "endpoint": endpoint}, key=key)
    zone.emit("orders", [{"domain": "shop", "type": "order.placed"}] * 3)
    zone.emit("pay", [{"domain": "shop", "type": "paid"}] * 2)
    finished(hub, zone.admin, endpoints[0], 5)
    finished(hub, own, endpoints[1], 3)
    for endpoint in endpoints:
        dead_letter(hub, endpoint, [1, 3])

    def listed(query: str, key: str = zone.admin) -> list[tuple[str, int, int]]:
        """Return all pages."""
        found, after = [], ""
        while True:
            page = hub.call("GET", f"/v1/deliveries?{query}{after}", key=key)
            assert page.status == 200, page
            found += page.json["items"]
            if page.json["next"] is None:
                assert {item["state"] for item in found} <= {"dead_lettered"}
                return [(item["stream"], item["sequence"], item["endpoint"]) for item in found]
            after = f"&after={page.json['next']}"

    first, second = endpoints
    mine = [("orders", 3, second), ("orders", 1, second)]
    every = {("pay", 1, first), ("orders", 3, first), ("orders", 1, first), *mine}
    assert set(listed("state=dead_lettered")) == every
    assert listed("state=dead_lettered&limit=1") == listed("state=dead_lettered")
    assert listed("state=dead_lettered", own) == mine
    assert listed("state=dead_lettered&client=own") == mine
    assert listed("state=dead_lettered&stream=pay") == [("pay", 1, first)]
    assert listed("state=cancelled") == listed("state=dead_lettered", other.admin) == []
    narrow = zone.key("listen:pay", "manage:*", client="narrow")
    assert listed("state=dead_lettered&limit=1", narrow) == [("pay", 1, first)]
    hub.call("GET", "/v1/deliveries?state=dead_lettered&client=tester", key=own).refused(
        403, "forbidden"
    )
    hub.call("GET", "/v1/deliveries?state=pending", key=own).refused(400, "missing_field")
    assert listed(f"state=dead_lettered&endpoint={second}&client=own") == mine
    assert listed(f"state=dead_lettered&endpoint={second}&client=tester") == []
