"""Events of sessions that are acknowledged over HTTP, in any process."""

from typing import Any

import pytest

from tests.acceptance.consumers import (
    SHOP,
    change,
    connect,
    consumer,
    create_group,
    create_session,
    numbers,
    post_acknowledgements,
)
from tests.acceptance.pulls import cursor, end_visibility, pull, pulled
from tests.acceptance.wire import EVENT, Session, numbered, session, until
from tests.live import Answer, LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def cursors(answer: Answer) -> dict[str, int]:
    """Return the sequences of the cursors in an answer, by stream."""
    assert answer.status == 200, answer
    return {each["stream"]: each["cursor"]["sequence"] for each in answer.json["streams"]}


async def ack(reader: Session, sequence: int) -> None:
    """Acknowledge an event over the socket, without an answer."""
    await reader.say("ack", session="s", stream="orders", sequences=[sequence])


def of_orders(**fields: Any) -> dict[str, Any]:
    return {"stream": "orders", **fields}


@pytest.mark.req("RDY-48")
async def test_events_are_acknowledged_while_nobody_is_connected(
    hub: LiveHub, orders: LiveZone
) -> None:
    """The cursor passes single events that follow it without a hole."""
    consumer(orders)
    orders.emit("orders", numbered(1, 6))
    assert cursors(post_acknowledgements(orders, of_orders(sequences=[2, 5]))) == {"orders": 0}
    answer = post_acknowledgements(orders, of_orders(sequences=[1]))
    assert cursors(answer) == {"orders": 2}
    assert answer.json["session"] == "s"
    async with session(hub, orders.admin) as reader:
        connected = (await connect(reader))["streams"][0]
        assert connected["cursor"] == answer.json["streams"][0]["cursor"]
        assert await numbers(reader, 3) == [3, 4, 6]


async def test_an_acknowledgement_in_another_process_frees_the_window(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It is not undone by what the connection's own process saves afterwards."""
    consumer(orders, window=2)
    orders.emit("orders", numbered(1, 7))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 2) == [1, 2]
        assert await reader.nothing_waits()
        assert cursors(post_acknowledgements(orders, of_orders(sequence=2))) == {"orders": 2}
        assert await numbers(reader, 2) == [3, 4]
        assert cursors(post_acknowledgements(orders, of_orders(sequences=[4]))) == {"orders": 2}
        assert await numbers(reader, 1) == [5]
        await ack(reader, 5)
        assert await numbers(reader, 1) == [6]
        assert cursors(post_acknowledgements(orders, of_orders(sequences=[3]), web=0))[
            "orders"
        ] in (4, 5)
        assert await numbers(reader, 1) == [7]
    async with session(hub, orders.admin, web=1) as reader:
        assert (await connect(reader))["streams"][0]["cursor"]["sequence"] == 5
        assert await numbers(reader, 2) == [6, 7]


async def test_many_acknowledgements_in_turn_of_both_processes_are_all_stored(
    hub: LiveHub, orders: LiveZone
) -> None:
    """The socket acknowledges even events, the other process odd ones; only every second event
    matches, so that only the connection's process can advance the cursor.
    """
    create_session(orders)
    orders.register({**SHOP, "session": "s"})
    other = {**EVENT, "domain": "bank"}
    orders.emit("orders", [EVENT if n % 2 else other for n in range(80)])
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        found = await numbers(reader, 40)
        assert found == list(range(2, 81, 2))
        for n in found[:-1]:
            if n % 4:
                assert post_acknowledgements(orders, of_orders(sequences=[n])).status == 200
            else:
                await ack(reader, n)
        await until(
            lambda: cursors(post_acknowledgements(orders, of_orders(sequence=0)))["orders"] == 79
        )
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [80]
        assert await reader.nothing_waits()


async def test_events_that_are_held_still_can_be_acknowledged(
    hub: LiveHub, orders: LiveZone
) -> None:
    """What waits for the window, and what was not read yet, does not come after it."""
    consumer(orders, window=1)
    orders.emit("orders", numbered(1, 9))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [1]
        post_acknowledgements(orders, of_orders(sequence=3, sequences=[5, 7]))
        assert await numbers(reader, 1) == [4]
        await ack(reader, 4)
        assert await numbers(reader, 1) == [6]
        await ack(reader, 6)
        assert await numbers(reader, 1) == [8]


async def test_an_order_that_sorts_takes_single_events(hub: LiveHub, orders: LiveZone) -> None:
    """Up to a sequence could mean events that were not delivered yet."""
    consumer(orders, order="priority", window=1)
    orders.emit("orders", [{**EVENT, "priority": n} for n in (0, 5, 9)])
    refused = post_acknowledgements(orders, of_orders(sequence=3))
    assert (refused.status, refused.json["code"]) == (409, "sequences_required")
    assert refused.json["position"] == {"field": "streams.0.sequence"}
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [3]
        assert cursors(post_acknowledgements(orders, of_orders(sequences=[3, 2]))) == {"orders": 0}
        assert await numbers(reader, 1) == [1]
        assert cursors(post_acknowledgements(orders, of_orders(sequences=[1]))) == {"orders": 3}


def test_acknowledging_again_has_no_effect(orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 3))
    first = post_acknowledgements(orders, of_orders(sequence=2))
    assert post_acknowledgements(orders, of_orders(sequence=2)).json == first.json
    assert cursors(post_acknowledgements(orders, of_orders(sequence=1, sequences=[0, 1]))) == {
        "orders": 2
    }


def test_one_bad_stream_refuses_the_whole_request(hub: LiveHub, orders: LiveZone) -> None:
    orders.create_stream("refunds")
    orders.create_stream("secret")
    consumer(orders)
    orders.emit("orders", numbered(1, 3))
    create_session(orders, "a", kind="admin")
    stranger = orders.key("listen:*", client="stranger")
    narrow = orders.key("listen:orders")
    good = of_orders(sequence=1)
    for given, status, code, field in (
        ([good, of_orders(sequence=4)], 409, "sequence_ahead", "streams.1.sequence"),
        ([good, of_orders(sequences=[1, 4])], 409, "sequence_ahead", "streams.1.sequences.1"),
        (
            [good, {"stream": "refunds", "sequence": 0}],
            404,
            "stream_of_no_registration",
            "streams.1.stream",
        ),
        (
            [good, {"stream": "nothing", "sequence": 0}],
            404,
            "stream_of_no_registration",
            "streams.1.stream",
        ),
    ):
        refused = post_acknowledgements(orders, *given)
        assert (refused.status, refused.json["code"]) == (status, code), refused
        assert refused.json["position"] == {"field": field}
    for name, key, status, code in (
        ("s", stranger, 404, "unknown_session"),
        ("nobody", "", 404, "unknown_session"),
        ("a", "", 403, "wrong_session_kind"),
    ):
        refused = post_acknowledgements(orders, good, name=name, key=key)
        assert (refused.status, refused.json["code"]) == (status, code), refused
    refused = post_acknowledgements(orders, good, {"stream": "secret", "sequence": 0}, key=narrow)
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert refused.json["position"] == {"field": "streams.1.stream"}
    assert cursors(post_acknowledgements(orders, of_orders(sequence=0))) == {"orders": 0}


def test_too_many_single_events_are_refused(hub: LiveHub, orders: LiveZone) -> None:
    """The first event of the session was never acknowledged."""
    consumer(orders)
    [(session_id,)] = hub.sql("SELECT max(id) FROM sessions")
    [(stream_id,)] = hub.sql("SELECT max(id) FROM streams")
    made = "SELECT array_agg(n) FROM generate_series(2, 10001) AS n"
    change = f"UPDATE session_cursors SET acknowledged = ({made}) WHERE session_id = %s"
    hub.sql(change, session_id)
    hub.sql("UPDATE heads SET sequence = 10003 WHERE stream_id = %s", stream_id)
    refused = post_acknowledgements(orders, of_orders(sequences=[10_003]))
    assert (refused.status, refused.json["code"]) == (409, "acknowledgements_full")
    assert refused.json["cursor"] == 0
    assert cursors(post_acknowledgements(orders, of_orders(sequences=[1]))) == {"orders": 10_001}


async def test_a_best_effort_session_needs_none(hub: LiveHub, orders: LiveZone) -> None:
    made = consumer(orders, quality="best_effort")
    orders.emit("orders", numbered(1, 3))
    assert cursors(post_acknowledgements(orders, of_orders(sequence=2))) == {"orders": 0}
    change(orders, made, quality="reliable")
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 3) == [1, 2, 3]


async def test_a_lost_notification_delays_by_a_second(hub: LiveHub, orders: LiveZone) -> None:
    """The process that serves the session looks by itself; here nothing is announced."""
    made = consumer(orders, window=1)
    orders.emit("orders", numbered(1, 2))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [1]
        hub.sql(
            "WITH counted AS (UPDATE sessions SET acknowledgements = acknowledgements + 1"
            " WHERE id = %s) UPDATE session_cursors SET sequence = 1 WHERE session_id = %s",
            made["id"],
            made["id"],
        )
        assert await numbers(reader, 1) == [2]


def test_what_was_pulled_is_acknowledged_and_does_not_come_again(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Also what is not pulled yet; the cursor passes events that do not match."""
    create_session(orders, window=3)
    orders.register({**SHOP, "session": "s"})
    other = {**EVENT, "domain": "bank"}
    orders.emit("orders", [EVENT if n % 2 else other for n in range(12)])
    assert pulled(orders, 3) == [(2, 1), (4, 1), (6, 1)]
    assert pull(orders)["events"] == []
    assert cursors(post_acknowledgements(orders, of_orders(sequences=[4, 10]))) == {"orders": 1}
    assert cursors(post_acknowledgements(orders, of_orders(sequences=[2]))) == {"orders": 5}
    assert cursor(orders) == (5, [10])
    end_visibility(hub)
    assert pulled(orders, 3) == [(6, 2), (8, 1), (12, 1)]
    assert cursors(post_acknowledgements(orders, of_orders(sequence=12))) == {"orders": 12}
    end_visibility(hub)
    assert pull(orders)["events"] == []


async def test_a_member_acknowledges_only_what_it_has_of_a_group_that_shares(
    hub: LiveHub, orders: LiveZone
) -> None:
    """The cursor is that of the group. A connected member gets further events at once."""
    create_group(orders, sharing="one", window=2)
    for name in ("one", "two", "three"):
        create_session(orders, name, group="g")
    orders.register({**SHOP, "session_group": "g"})
    orders.create_stream("refunds")
    orders.emit("orders", numbered(1, 8))
    assert pulled(orders, 2, "one") == [(1, 1), (2, 1)]
    assert cursors(post_acknowledgements(orders, of_orders(sequence=8), name="two")) == {
        "orders": 0
    }
    async with session(hub, orders.admin) as reader:
        await connect(reader, "two")
        assert await numbers(reader, 2) == [3, 4]
        assert cursors(post_acknowledgements(orders, of_orders(sequence=8), name="two")) == {
            "orders": 0
        }
        assert await numbers(reader, 2) == [5, 6]
        assert cursors(post_acknowledgements(orders, of_orders(sequences=[5, 1]), name="two")) == {
            "orders": 0
        }
        assert await numbers(reader, 1) == [7]
        assert cursors(post_acknowledgements(orders, of_orders(sequence=4), name="one")) == {
            "orders": 5
        }
        refused = post_acknowledgements(orders, of_orders(sequence=9), name="one")
        assert (refused.status, refused.json["code"]) == (409, "sequence_ahead")
        refused = post_acknowledgements(orders, {"stream": "refunds", "sequence": 0}, name="one")
        assert (refused.status, refused.json["code"]) == (404, "stream_of_no_registration")
    assert pulled(orders, 2, "three", web=1) == [(6, 2), (7, 2)]
