"""Paths name a session, and a session group, by its name or by its id."""

import pytest

from tests.acceptance.consumers import SHOP, consumer, create_group, create_session, numbers
from tests.acceptance.pulls import acknowledged, pull
from tests.acceptance.session_events import session_events
from tests.acceptance.wire import numbered
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def status(zone: LiveZone, method: str, path: str, key: str = "") -> tuple[int, str]:
    """Return the status and the code of an answer."""
    answer = zone.hub.call(method, path, key=key or zone.admin)
    return answer.status, answer.json.get("code", "") if answer.body else ""


def test_management_accepts_both(hub: LiveHub, orders: LiveZone) -> None:
    made = consumer(orders)
    team = create_group(orders)
    orders.emit("orders", numbered(1, 3))
    for collection, item in (("sessions", made), ("session-groups", team)):
        shown = [
            hub.call("GET", f"/v1/{collection}/{one}", key=orders.admin).json
            for one in (item["name"], item["id"])
        ]
        assert shown[0] == shown[1]
        assert shown[0]["id"] == item["id"]
    positions = hub.call("GET", "/v1/sessions/s/positions", key=orders.admin).json["items"]
    assert [one["lag"] for one in positions] == [3]
    changed = hub.call("PATCH", "/v1/sessions/s", {"window": 5}, key=orders.admin)
    assert (changed.status, changed.json["id"], changed.json["window"]) == (200, made["id"], 5)
    assert status(orders, "DELETE", "/v1/sessions/s") == (204, "")
    assert status(orders, "GET", f"/v1/sessions/{made['id']}") == (404, "unknown_session")


async def test_delivery_accepts_both(hub: LiveHub, orders: LiveZone) -> None:
    """The answers have the name."""
    made = consumer(orders)
    orders.emit("orders", numbered(1, 3))
    id = str(made["id"])
    answer = pull(orders, id, max=1)
    assert (answer["session"], [one["sequence"] for one in answer["events"]]) == ("s", [1])
    body = {"streams": [{"stream": "orders", "sequence": 1}]}
    path = f"/v1/sessions/{id}/acknowledgements"
    assert hub.call("POST", path, body, key=orders.admin).json["session"] == "s"
    async with session_events(hub, orders.admin, id) as reader:
        assert reader.skipped[0]["session"] == "s"
        assert await numbers(reader, 2) == [2, 3]


def test_a_name_is_one_of_the_own_client(hub: LiveHub, orders: LiveZone) -> None:
    """A manager of the zone names the sessions of other clients by their ids."""
    other = orders.key("listen:*", client="other")
    theirs = create_session(orders, "theirs", key=other)
    create_session(orders, "s", key=other)
    own = consumer(orders)
    assert hub.call("GET", "/v1/sessions/s", key=orders.admin).json["id"] == own["id"]
    assert status(orders, "GET", "/v1/sessions/theirs") == (404, "unknown_session")
    assert status(orders, "GET", f"/v1/sessions/{theirs['id']}") == (200, "")
    assert status(orders, "GET", f"/v1/sessions/{own['id']}", other) == (404, "unknown_session")
    for method, route in (("POST", "pull"), ("GET", "events")):
        path = f"/v1/sessions/{own['id']}/{route}"
        assert status(orders, method, path, other) == (404, "unknown_session")


def test_the_session_that_has_the_position_of_a_group_is_not_found(
    hub: LiveHub, orders: LiveZone
) -> None:
    create_group(orders, "team", sharing="one")
    create_session(orders, group="team")
    [(id,)] = hub.sql(
        "SELECT s.id FROM sessions s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.kind = 'group'",
        orders.name,
    )
    for method, route in (("POST", "pull"), ("POST", "acknowledgements"), ("GET", "events")):
        body = {"streams": [{"stream": "orders", "sequence": 1}]} if "ack" in route else None
        refused = hub.call(method, f"/v1/sessions/{id}/{route}", body, key=orders.admin)
        assert (refused.status, refused.json["code"]) == (404, "unknown_session"), route


def test_a_pull_that_acknowledges_in_another_stream_stores_nothing(
    hub: LiveHub, orders: LiveZone
) -> None:
    orders.create_stream("refunds")
    create_session(orders)
    orders.register({**SHOP, "session": "s"})
    orders.emit("orders", numbered(1, 2))
    assert len(pull(orders)["events"]) == 2
    wrong = {"stream": "refunds", "sequences": [1]}
    good = acknowledged(1)["acknowledgements"]
    for body, at in (
        ({"acknowledgements": [*good, wrong]}, "acknowledgements.1.stream"),
        (
            {"acknowledgements": good, "visibility": [{**wrong, "visibility_s": 0}]},
            "visibility.0.stream",
        ),
    ):
        refused = hub.call("POST", "/v1/sessions/s/pull", {"max": 0, **body}, key=orders.admin)
        assert (refused.status, refused.json["code"]) == (404, "stream_of_no_registration")
        assert (refused.json["position"], refused.json["stream"]) == ({"field": at}, "refunds")
    assert pull(orders, max=0, acknowledgements=good)["acknowledged"] == 1
