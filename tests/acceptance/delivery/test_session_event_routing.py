"""Many sessions on one stream: an event is a matter of those that it concerns alone."""

from typing import Any

import pytest

from tests.acceptance.consumers import connect, consumer, create_session, numbers
from tests.acceptance.matched_streams import match_work
from tests.acceptance.wire import EVENT, chunks, numbered, session, until
from tests.live import LiveHub, LiveZone

SESSIONS = 20
EVENTS = 200


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders", matching="scan")  # no other matcher of the hub works this way
    return zone


def one_for(n: int) -> dict[str, Any]:
    return {**EVENT, "attributes": {"n": n}}


async def test_a_session_does_not_evaluate_the_events_of_others(
    hub: LiveHub, orders: LiveZone
) -> None:
    for n in range(SESSIONS):
        create_session(orders, f"s{n}")
        filter = {"domain": "shop", "attributes": {"n": n}}
        orders.register({"streams": ["orders"], "session": f"s{n}", **filter})
    before = match_work(hub, ["listeners"], "scan").touched
    async with session(hub, orders.admin) as reader:
        for n in range(SESSIONS):
            await connect(reader, f"s{n}")
        for n in range(SESSIONS):
            orders.emit("orders", one_for(n))
            [event] = await reader.events(1)
            assert event["session"] == f"s{n}"
        for n in range(EVENTS):
            orders.emit("orders", one_for(3))
            [event] = await reader.events(1)
            assert (event["session"], event["sequence"]) == ("s3", SESSIONS + 1 + n)
            await reader.say("ack", session="s3", stream="orders", sequence=event["sequence"])
        for n in range(SESSIONS):  # the work is reported at the end
            await reader.say("disconnect", session=f"s{n}")
            await reader.hear_op("disconnected")
    touched = match_work(hub, ["listeners"], "scan").touched - before
    assert touched < EVENTS, "the router has matched the events of s3, for all sessions"


async def test_the_position_of_a_session_that_nothing_concerns_advances(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Retention and the next connection depend on it."""
    made = create_session(orders)
    orders.register({"streams": ["orders"], "session": "s", "domain": "bank"})
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        orders.emit("orders", {**EVENT, "domain": "bank"})
        assert await numbers(reader, 1) == [1]
        await reader.say("ack", session="s", stream="orders", sequence=1)
        orders.emit("orders", numbered(2, 50))

        def saved() -> int:
            query = "SELECT sequence FROM session_cursors WHERE session_id = %s"
            [(sequence,)] = hub.sql(query, made["id"])
            return int(sequence)

        await until(lambda: saved() == 50, timeout_s=40)


async def test_a_session_that_takes_nothing_reads_the_rest_from_the_log(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders, window=5)
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        orders.emit("orders", numbered(1, 5))
        received = await numbers(reader, 5)
        for chunk in chunks(numbered(6, 1_000), 100):
            orders.emit("orders", chunk)
        while len(received) < 1_000:
            await reader.say("ack", session="s", stream="orders", sequence=received[-1])
            received += await numbers(reader, 5)
        assert received == list(range(1, 1_001))
