"""Events that are handed out as often as a session allows, and not acknowledged, are skipped and
announced.
"""

from typing import Any

import pytest

from tests.acceptance.consumers import (
    SHOP,
    acknowledge,
    change,
    connect,
    consumer,
    create_group,
    create_session,
    numbers,
)
from tests.acceptance.eventhub.eventlog.test_retention import announced, wait_for
from tests.acceptance.pulls import acknowledged, cursor, end_visibility, pull, pulled
from tests.acceptance.wire import EVENT, numbered, session
from tests.live import LiveHub, LiveZone

SKIPPED = "session.event_skipped"


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def skips(zone: LiveZone, count: int) -> list[dict[str, Any]]:
    """Wait until so many events announce what was skipped; return their attributes."""
    wait_for(lambda: len(announced(zone, SKIPPED)) >= count, "skipped events to be announced")
    return announced(zone, SKIPPED)


def counted(hub: LiveHub) -> float:
    """Return the metric of skipped events, over all processes."""
    lines = hub.call("GET", "/metrics").body.decode().splitlines()
    values = [one for one in lines if one.startswith("eventhub_skipped_events_total")]
    return sum(float(one.split()[-1]) for one in values)


async def test_an_event_is_skipped_after_its_last_attempt_and_announced(
    hub: LiveHub, orders: LiveZone
) -> None:
    made = consumer(orders, attempts_max=2)
    assert (made["attempts_max"], made["delivery"]["attempts_max"]) == (2, 2)
    orders.emit("orders", numbered(1, 3))
    before = counted(hub)
    assert pulled(orders, 3) == [(1, 1), (2, 1), (3, 1)]
    pull(orders, max=0, **acknowledged(1, 3))
    assert cursor(orders) == (1, [3])
    end_visibility(hub, 2)
    assert pulled(orders, 1, web=1) == [(2, 2)]
    assert pull(orders)["events"] == []
    assert cursor(orders) == (1, [3]), "its last time is not over"
    end_visibility(hub, 2)
    assert pull(orders)["events"] == []
    assert cursor(orders) == (3, [])
    assert counted(hub) - before == 1
    [found] = skips(orders, 1)
    [skipped] = found.pop("skipped")
    assert found.items() >= {
        "level": "warning", "zone": orders.name, "client": "tester", "session": made["id"],
        "session_group": None, "name": "s", "events": 1,
    }.items()  # fmt: skip
    segment = hub.call("GET", "/v1/streams/orders", key=orders.admin).json["segment"]["uuid"]
    assert skipped == {"stream": "orders", "segment": segment, "sequence": 2, "attempts": 2}
    orders.emit("orders", EVENT)
    assert pulled(orders, 1) == [(4, 1)]


async def test_without_the_setting_an_event_comes_again_without_end(
    hub: LiveHub, orders: LiveZone
) -> None:
    made = consumer(orders)
    orders.emit("orders", EVENT)
    for attempt in range(1, 6):
        assert pulled(orders, 1) == [(1, attempt)]
        end_visibility(hub, 1)
    change(orders, made, attempts_max=9)
    assert pulled(orders, 1) == [(1, 6)]
    end_visibility(hub, 1)
    change(orders, made, attempts_max=3)
    assert pull(orders)["events"] == []
    assert cursor(orders) == (1, [])


async def test_an_event_that_is_given_back_after_its_last_attempt_is_skipped(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders, attempts_max=1)
    orders.emit("orders", numbered(1, 2))
    assert pulled(orders, 1) == [(1, 1)]
    back = [{"stream": "orders", "sequences": [1], "visibility_s": 0}]
    answer = pull(orders, wait_s=10, visibility=back)
    assert [(event["sequence"], event["attempt"]) for event in answer["events"]] == [(2, 1)]
    assert skips(orders, 1)[0]["skipped"][0]["sequence"] == 1


async def test_a_poison_event_holds_up_its_key_only_until_it_is_skipped(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Of a group that shares by a key; a connected member gets what follows."""
    group = create_group(orders, sharing="one", share_by="customer", attempts_max=2)
    for name in ("one", "two"):
        create_session(orders, name, group="g")
    orders.register({**SHOP, "session_group": "g"})
    orders.emit("orders", [{**EVENT, "attributes": {"customer": 7, "n": n}} for n in (1, 2)])
    assert pulled(orders, 1, "one") == [(1, 1)]
    end_visibility(hub, 1)
    assert pulled(orders, 1, "two", web=1) == [(1, 2)]
    assert pull(orders, "one")["events"] == []
    end_visibility(hub, 1)
    async with session(hub, orders.admin) as reader:
        await connect(reader, "one")
        assert await numbers(reader, 1) == [2]
        await acknowledge(reader, 2, name="one")
    [found] = skips(orders, 1)
    assert (found["session"], found["session_group"], found["name"]) == (None, group["id"], "g")


async def test_many_skipped_events_are_announced_together(hub: LiveHub, orders: LiveZone) -> None:
    """The first at once, and all others a minute later by one event, which names some of them."""
    made = consumer(orders, attempts_max=1)
    orders.emit("orders", numbered(1, 61))
    assert pulled(orders, 1) == [(1, 1)]
    end_visibility(hub)
    assert pull(orders, max=30)["events"] != []
    assert [one["events"] for one in skips(orders, 1)] == [1]
    end_visibility(hub)
    assert len(pull(orders, max=100)["events"]) == 30
    end_visibility(hub)
    assert pull(orders)["events"] == []
    query = "SELECT events FROM session_skips WHERE session_id = %s"
    assert hub.sql(query, made["id"]) == [(60,)], "they wait for the interval"
    hub.sql(
        "UPDATE session_skips SET announced_at = now() - interval '1 h' WHERE session_id = %s",
        made["id"],
    )
    _, second = skips(orders, 2)
    assert second["events"] == 60
    assert [one["sequence"] for one in second["skipped"]] == [*range(2, 22)]
    assert cursor(orders) == (61, [])
