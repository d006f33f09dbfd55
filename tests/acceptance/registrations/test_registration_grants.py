"""Default deny: registrations, endpoints and deliveries of a client are hidden from those of its
own keys that may not listen, on the running hub.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.delivery.test_deliveries import finished
from tests.acceptance.eventhub.eventlog.test_retention import wait_for
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed", "attributes": {"n": 1}}
MISSING = {"action": "listen", "streams": "orders"}
ANY = {"action": "listen", "streams": "*"}
# of the same client: none of them may listen to `orders`
WITHOUT: tuple[tuple[str, ...], ...] = ((), ("emit:*",), ("manage:*",), ("listen:other*",))


class Shop:
    """A zone whose client has a registration on `orders`, and one on `orders` and `other_1`."""

    def __init__(self, zone: LiveZone, url: str) -> None:
        self.zone = zone
        for name in ("orders", "other_1", "otherx1"):
            zone.create_stream(name)
        self.endpoint = zone.endpoint(url)["id"]
        self.spare = zone.endpoint(f"{url}/spare")["id"]
        target = {"endpoint": self.endpoint}
        one, both, other = zone.register(
            {"streams": ["orders"], **target},
            {"streams": ["other_1", "orders"], **target},
            {"streams": ["other_1"], "endpoint": self.spare},
        )
        self.one, self.both, self.other = one["id"], both["id"], other["id"]

    def call(self, key: str, method: str, path: str, body: Any = None) -> Any:
        return self.zone.hub.call(method, path, body, key=key)


@pytest.fixture
def shop(zone: LiveZone, sink: Sink) -> Shop:
    return Shop(zone, sink.url(f"/{zone.name}"))


def denied(answer: Any, grant: dict[str, str]) -> None:
    assert answer.refused(403, "forbidden")["grant"] == grant, answer


@pytest.mark.parametrize("grants", WITHOUT, ids=str)
def test_only_keys_that_may_listen_see_events(shop: Shop, grants: tuple[str, ...]) -> None:
    zone = shop.zone
    assert zone.emit("orders", EVENT).status == 200
    [item] = finished(zone.hub, zone.admin, shop.endpoint, 1)
    key = zone.key(*grants)
    denied(shop.call(key, "GET", f"/v1/deliveries/{item['id']}"), MISSING)
    denied(shop.call(key, "GET", "/v1/deliveries?stream=orders&sequence=1"), MISSING)
    path = f"/v1/deliveries?endpoint={shop.endpoint}"
    denied(shop.call(key, "GET", f"{path}&stream=orders"), MISSING)
    listed = shop.call(key, "GET", path)
    if grants in ((), ("emit:*",)):
        denied(listed, ANY)
    else:  # those of `other_1`, or of `system`: there are none
        assert listed.json == {"items": [], "next": None}
    good = zone.key("listen:orders")
    assert shop.call(good, "GET", path).json["items"] == [item]
    assert shop.call(good, "GET", f"/v1/deliveries/{item['id']}").json["event"]
    assert zone.hub.operate("GET", f"{path}&zone={zone.name}").json["items"] == [item]


def test_a_list_leaves_out_the_streams_that_the_key_may_not_listen_to(shop: Shop) -> None:
    zone = shop.zone
    for stream in ("orders", "other_1", "orders", "other_1"):
        assert zone.emit(stream, EVENT).status == 200
    finished(zone.hub, zone.admin, shop.endpoint, 4)
    path = f"/v1/deliveries?endpoint={shop.endpoint}&limit=1"
    for grant, expected in (
        ("listen:oth*", {"other_1"}),
        ("listen:other_*", {"other_1"}),
        ("listen:*1", {"other_1"}),
        ("listen:Other_1", set()),
        ("listen:o_*", set()),
        ("listen:*", {"orders", "other_1"}),
    ):
        key, found, after = zone.key(grant), [], ""
        while True:
            page = shop.call(key, "GET", f"{path}{after}").json
            found += page["items"]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        assert {item["stream"] for item in found} == expected, grant
        assert len(found) == 2 * len(expected)


def test_managers_see_the_events_of_system(zone: LiveZone, sink: Sink) -> None:
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    [made] = zone.register({"streams": ["system"], "type": "channel.defined", "endpoint": endpoint})
    zone.define_channel("disk", 0)
    [item] = finished(zone.hub, zone.admin, endpoint, 1)
    for path in (f"/v1/deliveries/{item['id']}", f"/v1/registrations/{made['id']}"):
        assert zone.hub.call("GET", path, key=zone.key("manage:system")).status == 200
        assert zone.hub.call("GET", path, key=zone.key("listen:*")).status in (403, 404)
    path = f"/v1/deliveries?endpoint={endpoint}"
    assert zone.hub.call("GET", path, key=zone.key("manage:*")).json["items"] == [item]
    assert zone.hub.call("GET", path, key=zone.key("listen:*")).json["items"] == []


@pytest.mark.parametrize("grants", WITHOUT, ids=str)
def test_a_registration_is_for_keys_that_may_listen_to_all_its_streams(
    shop: Shop, grants: tuple[str, ...]
) -> None:
    key = shop.zone.key(*grants)
    listed = shop.call(key, "GET", "/v1/registrations").json["items"]
    seen = [shop.other] if grants == ("listen:other*",) else []
    assert [item["id"] for item in listed] == seen
    for registration in (shop.one, shop.both):
        path = f"/v1/registrations/{registration}"
        shop.call(key, "GET", path).refused(404, "unknown_registration")
        denied(
            shop.call(key, "DELETE", path), MISSING if registration == shop.one else _first(grants)
        )
        for change in ({"type": "x"}, {"endpoint": None}, {"streams": ["otherx1"]}, {}):
            refused = shop.call(key, "PATCH", path, change).refused(403, "forbidden")
            assert refused["position"]["field"] == "streams"
    everything = shop.call(shop.zone.admin, "GET", "/v1/registrations").json["items"]
    assert [item["version"] for item in everything] == [1, 1, 1]
    good = shop.zone.key("listen:o*")
    assert shop.call(good, "GET", "/v1/registrations").json["items"] == everything
    assert shop.call(good, "PATCH", f"/v1/registrations/{shop.both}", {"type": "x"}).status == 200
    assert shop.call(good, "DELETE", f"/v1/registrations/{shop.both}").status == 204


def _first(grants: tuple[str, ...]) -> dict[str, str]:
    """Return the first of the streams `other_1` and `orders` that a key may not listen to."""
    return MISSING if "listen:other*" in grants else {"action": "listen", "streams": "other_1"}


@pytest.mark.parametrize("grants", WITHOUT, ids=str)
def test_no_key_redirects_events_that_it_may_not_listen_to(
    shop: Shop, grants: tuple[str, ...]
) -> None:
    zone, path = shop.zone, f"/v1/endpoints/{shop.endpoint}"
    before = shop.call(zone.admin, "GET", path).json
    key = zone.key(*grants)
    listens = grants == ("listen:other*",)
    missing = MISSING if listens else ANY
    changes = ({"url": "https://thief.example/"}, {"enabled": False}, {"ordered": True})
    for change in changes:
        denied(shop.call(key, "PATCH", path, change), missing)
    denied(shop.call(key, "DELETE", path), missing)
    assert shop.call(zone.admin, "GET", path).json == before
    made = shop.call(key, "POST", "/v1/endpoints", {"url": "https://thief.example/"})
    said = shop.call(key, "PATCH", path, {"description": "x"})
    if not listens:
        denied(made, ANY)
        denied(said, ANY)
        return
    assert (made.status, said.status) == (201, 200)
    spare = f"/v1/endpoints/{shop.spare}"  # all that it is sent the key may listen to
    for change in changes:
        assert shop.call(key, "PATCH", spare, change).status == 200
    shop.call(key, "DELETE", spare).refused(409, "endpoint_in_use")
    assert shop.call(key, "DELETE", f"/v1/registrations/{shop.other}").status == 204
    assert shop.call(key, "DELETE", spare).status == 204


def test_operators_change_and_end_all_of_it(shop: Shop) -> None:
    hub, zone = shop.zone.hub, f"?zone={shop.zone.name}"
    path = f"/v1/endpoints/{shop.endpoint}{zone}"
    assert hub.operate("PATCH", path, {"enabled": False, "ordered": True}).status == 200
    for registration in (shop.one, shop.both):
        path_of = f"/v1/registrations/{registration}{zone}"
        assert hub.operate("GET", path_of).status == 200
        assert hub.operate("PATCH", path_of, {"type": "x"}).status == 200
        assert hub.operate("DELETE", path_of).status == 204
    assert hub.operate("DELETE", path).status == 204


def test_management_answers_at_once_when_its_connections_died(hub: LiveHub, zone: LiveZone) -> None:
    """After a restart of PostgreSQL no dead connection is handed out, even if all connections of
    the process died.
    """
    idle = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND application_name = 'eventhub django'"
        " AND backend_type = 'client backend' AND state = 'idle'"
    )

    def listed(_: int) -> int:
        return hub.call("GET", "/v1/registrations", key=zone.admin).status

    def all_held() -> bool:
        with ThreadPoolExecutor(8) as readers:
            assert set(readers.map(listed, range(32))) == {200}
        return len(hub.sql(idle)) >= 4

    wait_for(all_held, "a pool that is full")
    pids = [pid for (pid,) in hub.sql(idle)]
    hub.sql("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", pids)
    wait_for(
        lambda: not hub.sql("SELECT FROM pg_stat_activity WHERE pid = ANY (%s)", pids), "their ends"
    )
    for _ in range(20):
        answer = hub.call("GET", "/v1/registrations", key=zone.admin)
        assert answer.status == 200, answer
