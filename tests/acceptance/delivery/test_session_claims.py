"""Events in flight: the claims of sessions and of session groups whose members share."""

from typing import Any

import pytest

from tests.acceptance.consumers import SHOP, consumer, create_group, create_session
from tests.acceptance.eventhub.eventlog.test_retention import wait_for
from tests.acceptance.pulls import acknowledged, end_visibility, pull, pulled
from tests.acceptance.wire import numbered
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def items(zone: LiveZone, path: str, key: str = "") -> list[dict[str, Any]]:
    answer = zone.hub.call("GET", path, key=key or zone.admin)
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.json["items"]
    return found


def in_flight(zone: LiveZone, path: str) -> list[tuple[int, int, str]]:
    """Return the sequence, the attempt and the holder of each claim."""
    found = items(zone, f"{path}/claims")
    return [(one["sequence"], one["attempt"], one["holder"]) for one in found]


def test_claims_of_a_session_are_what_was_pulled_and_not_acknowledged(
    hub: LiveHub, orders: LiveZone
) -> None:
    path = f"/v1/sessions/{consumer(orders)['id']}"
    orders.emit("orders", numbered(1, 5))
    assert items(orders, f"{path}/claims") == []
    assert len(pulled(orders, 4, visibility_s=600)) == 4
    pull(orders, max=0, **acknowledged(3))
    end_visibility(hub, 2)
    assert pulled(orders, 1, visibility_s=600) == [(2, 2)]
    assert in_flight(orders, path) == [(1, 1, "s"), (2, 2, "s"), (4, 1, "s")]
    assert hub.call("GET", path, key=orders.admin).json["claims"] == 3
    first = hub.call("GET", f"{path}/claims?limit=2", key=orders.admin).json
    rest = hub.call("GET", f"{path}/claims?after={first['next']}", key=orders.admin).json
    assert [one["sequence"] for one in first["items"] + rest["items"]] == [1, 2, 4]
    assert rest["next"] is None
    [(until,)] = hub.sql(
        "SELECT to_char(claimed_until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        " FROM session_claims WHERE id = %s",
        first["items"][0]["id"],
    )
    stream = hub.call("GET", "/v1/streams/orders", key=orders.admin).json
    assert first["items"][0].items() >= {
        "stream": "orders", "segment": stream["segment"]["uuid"], "claimed_until": until
    }.items()  # fmt: skip
    pull(orders, max=0, **acknowledged(through=4))
    assert items(orders, f"{path}/claims") == []


def test_a_group_that_shares_has_a_position_and_the_claims_of_its_members(
    hub: LiveHub, orders: LiveZone
) -> None:
    group = create_group(orders, sharing="one")
    assert (group["lag"], group["claims"]) == (0, 0)
    team = f"/v1/session-groups/{group['id']}"
    one, two = (create_session(orders, name, group="g") for name in ("one", "two"))
    orders.register({**SHOP, "session_group": "g"})
    orders.register({**SHOP, "session": "one"})  # a position of the member's own
    orders.emit("orders", numbered(1, 5))
    assert pulled(orders, 2, "one", visibility_s=600) == [(1, 1), (2, 1)]
    assert pulled(orders, 1, "two", visibility_s=600) == [(3, 1)]
    pull(orders, "one", max=0, **acknowledged(1))
    assert in_flight(orders, team) == [(2, 1, "one"), (3, 1, "two")]
    assert in_flight(orders, f"/v1/sessions/{one['id']}") == [(2, 1, "one")]
    assert in_flight(orders, f"/v1/sessions/{two['id']}") == [(3, 1, "two")]
    [position] = items(orders, f"{team}/positions")
    assert (position["cursor"]["sequence"], position["last"], position["lag"]) == (1, 5, 4)
    shown = hub.call("GET", team, key=orders.admin).json
    assert (shown["lag"], shown["claims"]) == (4, 2)
    [(queue,)] = hub.sql("SELECT id FROM sessions WHERE group_id = %s AND kind = 'group'",
                         group["id"])  # fmt: skip
    for what in ("claims", "positions"):
        answer = hub.call("GET", f"/v1/sessions/{queue}/{what}", key=orders.admin)
        answer.refused(404, "unknown_session")


def test_a_group_whose_members_get_every_event_has_none(hub: LiveHub, orders: LiveZone) -> None:
    group = create_group(orders)
    member = create_session(orders, "one", group="g")
    orders.register({**SHOP, "session_group": "g"})
    orders.emit("orders", numbered(1, 2))
    assert pulled(orders, 1, "one", visibility_s=600) == [(1, 1)]
    assert (group["lag"], group["claims"]) == (None, None)
    for what in ("claims", "positions"):
        assert items(orders, f"/v1/session-groups/{group['id']}/{what}") == []
    assert in_flight(orders, f"/v1/sessions/{member['id']}") == [(1, 1, "one")]


def test_a_key_sees_claims_in_streams_that_it_may_listen_to(hub: LiveHub, orders: LiveZone) -> None:
    orders.create_stream("alarms")
    wide, narrow = (
        orders.key(*grants, client="shop") for grants in (["listen:*"], ["listen:alarms"])
    )
    made = create_session(orders, "s", key=wide)
    orders.register({"streams": ["orders", "alarms"], "session": "s"}, key=wide)
    orders.emit("orders", numbered(1, 1))
    orders.emit("alarms", numbered(1, 1))
    assert len(pulled(orders, 2, key=wide, visibility_s=600)) == 2
    path = f"/v1/sessions/{made['id']}/claims"
    seen = [sorted(one["stream"] for one in items(orders, path, key)) for key in (wide, narrow)]
    assert seen == [["alarms", "orders"], ["alarms"]]


def test_claims_are_counted_for_a_metric(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 3))
    assert len(pulled(orders, 3, visibility_s=600)) == 3

    def counted() -> bool:
        [(claims,)] = hub.sql("SELECT count(*) FROM session_claims")
        lines = hub.call("GET", "/metrics").body.decode().splitlines()
        return f"eventhub_claimed_events {float(claims)}" in lines

    wait_for(counted, "the claims to be counted")
