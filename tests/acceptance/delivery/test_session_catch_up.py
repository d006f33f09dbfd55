"""Many sessions that come back to one stream pass the same events: each is read and evaluated for
those that it may concern.
"""

from typing import Any

import pytest

from tests.acceptance.consumers import connect, create_session
from tests.acceptance.matched_streams import match_work
from tests.acceptance.wire import EVENT, chunks, session
from tests.live import LiveHub, LiveZone

SESSIONS = 20
EVENTS = 2_000
WHOLE = 256  # events that a session evaluates before its filter is loaded, or the router runs


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders", matching="scan")  # no other matcher of the hub works this way
    return zone


def numbered(n: int) -> dict[str, Any]:
    """Return an event whose type, number and list of tags depend on n."""
    attributes = {"n": n % SESSIONS, "tags": [f"t{n % 7}", f"t{n % 11}"]}
    return {**EVENT, "type": f"T{n % 3}", "attributes": attributes}


def emit_all(orders: LiveZone) -> None:
    for chunk in chunks([numbered(n) for n in range(1, EVENTS + 1)], 500):
        orders.emit("orders", chunk)


async def received(reader: Any, name: str, sequences: list[int]) -> None:
    """Receive exactly these events of a session, and acknowledge them."""
    found: list[int] = []
    while len(found) < len(sequences):
        [event] = await reader.events(1)
        assert event["session"] == name
        found.append(event["sequence"])
        await reader.say("ack", session=name, stream="orders", sequence=event["sequence"])
    assert found == sequences


async def ended(reader: Any, name: str) -> None:
    """Disconnect a session: the counter of its work is published then."""
    await reader.say("disconnect", session=name)
    await reader.hear_op("disconnected")


@pytest.mark.parametrize("watched", [False, True], ids=["of the log", "of the ring"])
async def test_sessions_that_catch_up_evaluate_few_events_of_others(
    hub: LiveHub, orders: LiveZone, watched: bool
) -> None:
    for n in range(SESSIONS):
        create_session(orders, f"s{n}")
        filter = {"domain": "shop", "attributes": {"n": n}}
        orders.register({"streams": ["orders"], "session": f"s{n}", **filter})
    create_session(orders, "other")
    orders.register({"streams": ["orders"], "session": "other", "domain": "bank"})
    async with session(hub, orders.admin) as watcher:
        await connect(watcher, "other")  # a session that is alone shares nothing
        if watched:
            await watcher.say("listen", listen="a", stream="orders", filter={"domain": "none"})
        emit_all(orders)
        before = match_work(hub, ["listeners"], "scan").touched
        for n in range(SESSIONS):
            async with session(hub, orders.admin) as reader:
                await connect(reader, f"s{n}")
                mine = [at for at in range(1, EVENTS + 1) if at % SESSIONS == n]
                await received(reader, f"s{n}", mine)
                await ended(reader, f"s{n}")
        await ended(watcher, "other")
    touched = match_work(hub, ["listeners"], "scan").touched - before
    assert EVENTS <= touched < SESSIONS * (2 * EVENTS // SESSIONS + WHOLE) + EVENTS, "of 40,000"


@pytest.mark.parametrize(
    ("filter", "matches"),
    [
        ({"domain": "shop", "type": "T1"}, lambda n: n % 3 == 1),
        ({"domain": "shop", "attributes": {"tags": "t3"}}, lambda n: 3 in (n % 7, n % 11)),
        ({"language": "predicate", "filter": "(> n 17)"}, lambda n: n % SESSIONS > 17),
        (
            {
                "language": "predicate",
                "filter": "(or (= n 4) (and (= @type 'T2) (= tags 't5)))",
            },
            lambda n: n % SESSIONS == 4 or (n % 3 == 2 and 5 in (n % 7, n % 11)),
        ),
        ({"domain": "bank"}, lambda n: False),
    ],
    ids=["type", "list", "range", "alternatives", "nothing"],
)
async def test_a_session_gets_exactly_what_matches(
    hub: LiveHub, orders: LiveZone, filter: dict[str, Any], matches: Any
) -> None:
    create_session(orders, "s", window=10_000)
    last = {"domain": "shop", "attributes": {"last": True}}
    for one in (filter, last):
        orders.register({"streams": ["orders"], "session": "s", **one})
    emit_all(orders)
    orders.emit("orders", {**EVENT, "type": "Last", "attributes": {"last": True}})
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        sequences = [n for n in range(1, EVENTS + 1) if matches(n)]
        found = await reader.events(len(sequences) + 1)
        assert [event["sequence"] for event in found] == [*sequences, EVENTS + 1]


async def test_a_registration_that_was_added_while_a_session_was_away_is_not_passed(
    hub: LiveHub, orders: LiveZone
) -> None:
    """The page of a reader is narrowed by what is registered when the page is evaluated."""
    create_session(orders, "s", window=10_000)
    orders.register({"streams": ["orders"], "session": "s", "domain": "shop", "type": "T0"})
    half = [numbered(n) for n in range(1, EVENTS // 2 + 1)]
    for chunk in chunks(half, 500):
        orders.emit("orders", chunk)
    orders.register({"streams": ["orders"], "session": "s", "domain": "shop", "type": "T1"})
    for chunk in chunks(half, 500):
        orders.emit("orders", chunk)
    late = EVENTS // 2
    expected = [n for n in range(1, late + 1) if n % 3 == 0]
    expected += [late + n for n in range(1, late + 1) if n % 3 in (0, 1)]
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        found = await reader.events(len(expected))
        assert [event["sequence"] for event in found] == expected


async def test_a_registration_of_a_connected_session_applies_to_the_next_event(
    hub: LiveHub, orders: LiveZone
) -> None:
    """A page is narrowed after the change is known: its reader shares blocks with another one."""
    for name in ("s", "other"):
        create_session(orders, name, window=10_000)
        orders.register({"streams": ["orders"], "session": name, "domain": "shop", "type": "First"})
    async with session(hub, orders.admin) as reader, session(hub, orders.admin) as other:
        await connect(reader)
        await connect(other, "other")
        last = 0
        for type in ("First", "Second", "Third", "Fourth"):
            if type != "First":
                new = {"streams": ["orders"], "session": "s", "domain": "shop", "type": type}
                orders.register(new)
            orders.emit("orders", [{**EVENT, "type": type}] * 300)
            found = await reader.events(300)
            assert [event["sequence"] for event in found] == [*range(last + 1, last + 301)]
            last += 300
