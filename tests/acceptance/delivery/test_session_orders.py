"""The orders of consumer sessions over the websocket: what is held comes in that order."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.consumers import connect, create_session
from tests.acceptance.wire import EVENT, JSON, PROTOBUF, Session, numbered, session, until
from tests.live import LiveHub, LiveZone

PAST = datetime.now(UTC) - timedelta(minutes=10)
SOON = PAST + timedelta(hours=1)


def at(seconds: float, *, of: datetime = PAST) -> str:
    return (of + timedelta(seconds=seconds)).isoformat()


def id_of(sequence: int, incarnation: int = 1) -> dict[str, int]:
    return {"sequence": sequence, "incarnation": incarnation}


# (client, event): the letters of the expected lists, in the order in which they are emitted
SIX: list[tuple[str, dict[str, Any]]] = [
    ("web", {"name": "a", "type": "order.placed", "id": id_of(2), "time": at(-30)}),
    (
        "app",
        {
            **{"name": "b", "type": "alarm", "id": id_of(1), "time": at(-50), "priority": 5},
            "expires_at": at(300, of=SOON),
        },
    ),
    (
        "web",
        {
            **{"name": "c", "type": "order.paid", "id": id_of(1), "time": at(-10)},
            "expires_at": at(100, of=SOON),
        },
    ),
    (
        "app",
        {
            **{"name": "d", "type": "alarm.fire", "id": id_of(2), "time": at(-40), "priority": 9},
            "expires_at": at(200, of=SOON),
        },
    ),
    ("web", {"name": "e", "type": "order.placed", "id": id_of(3), "time": at(-15), "priority": 5}),
    (
        "app",
        {
            **{"name": "f", "type": "report", "id": id_of(3), "time": at(-20), "priority": -1},
            "expires_at": at(400, of=SOON),
        },
    ),
]
LISTS: list[tuple[str, dict[str, Any], str]] = [
    ("none", {}, "abcdef"),
    ("fifo", {}, "abcdef"),
    ("priority", {}, "dbeacf"),
    ("validity", {}, "cdbfae"),
    ("supplier", {"suppliers": ["web"]}, "caebdf"),
    ("type", {"types": ["alarm.*", "report"]}, "dfbcae"),
    ("timestamp", {"occur_delay_ms": 0}, "bdafec"),
]


def ordered(zone: LiveZone, order: str, name: str = "s", **more: Any) -> None:
    """Create a session with an order and a registration of all events of its streams."""
    streams = more.pop("streams", ["orders"])
    create_session(zone, name, order=order, **more)
    zone.register({"streams": streams, "domain": "shop", "session": name})


async def names(reader: Session, count: int) -> str:
    """Receive events; return their names as one text."""
    return "".join([event["event"]["name"] for event in await reader.events(count)])


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {**EVENT, "name": name, **fields}


@pytest.mark.req("RDY-49", "RDY-11")
async def test_one_held_queue_comes_in_seven_orders(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    for order, options, _ in LISTS:
        ordered(zone, order, order, order_options=options)
    keys = {client: zone.key("emit:*", client=client) for client in ("web", "app")}
    for client, fields in SIX:
        assert zone.emit("orders", {**EVENT, **fields}, key=keys[client]).status == 200
    async with session(hub, zone.admin) as reader:
        for order, _, expected in LISTS:
            await connect(reader, order)
            found = await reader.events(6)
            assert "".join(each["event"]["name"] for each in found) == expected, order
            assert {each["session"] for each in found} == {order}
        assert await reader.nothing_waits()


@pytest.mark.req("FOX-04")
async def test_an_event_with_priority_is_next_behind_a_thousand(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    ordered(zone, "priority", window=10)
    for first in range(1, 1_001, 100):
        zone.emit("orders", numbered(first, first + 99))
    zone.emit("orders", {**EVENT, "priority": 1})
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        found = [event["sequence"] for event in await reader.events(10)]
        assert found == [1_001, *range(1, 10)]
        await reader.listen("orders")
        zone.emit("orders", {**EVENT, "priority": 9})
        [seen] = await reader.events(1)
        assert (seen["listener"], seen["sequence"]) == ("a", 1_002)
        # the session reads the stream by itself, and may be a moment later than the listener
        for acknowledged in range(1, 10):
            await reader.say("ack", session="s", stream="orders", sequences=[acknowledged])
            [event] = await reader.events(1)
            if event["sequence"] == 1_002:
                break
        assert (event["session"], event["sequence"]) == ("s", 1_002)


@pytest.mark.req("RDY-50", "RDY-11")
@pytest.mark.parametrize("relative", [False, True])
async def test_an_event_that_expires_while_it_is_held_is_not_sent_but_counted(
    hub: LiveHub, zone: LiveZone, relative: bool
) -> None:
    """Held by the window of a connected session, whose order has read it already, and while no
    connection serves the session.
    """
    zone.create_stream("orders")
    ordered(zone, "priority", "connected", window=1)
    ordered(zone, "validity", "away")
    async with session(hub, zone.admin) as reader:
        await connect(reader, "connected")
        before = expired(hub)
        end = time.time() + 1.0
        expires: dict[str, Any] = {"expires_at": datetime.fromtimestamp(end, UTC).isoformat()}
        if relative:
            expires = {"expires_in_ms": 1_000}
        zone.emit("orders", [named("1"), named("2", **expires), named("3")])
        assert await names(reader, 1) == "1"
        await until(lambda: time.time() > end + relative)
        await reader.say("ack", session="connected", stream="orders", sequence=1)
        assert await names(reader, 1) == "3"
        await connect(reader, "away")
        assert await names(reader, 2) == "13"
        assert expired(hub) == before + 2
        await reader.say("ack", session="away", stream="orders", sequence=3, id="all")
        await reader.hear_op("acked")
        await reader.say("disconnect", session="away")
        await reader.hear_op("disconnected")
        [stream] = (await connect(reader, "away"))["streams"]
        assert stream["cursor"]["sequence"] == 3, "the expired one counts as settled"


def expired(hub: LiveHub) -> int:
    """Return how many expired events the first web process has counted."""
    text = hub.call("GET", "/metrics").body.decode()
    lines = [line for line in text.splitlines() if line.startswith("eventhub_expired_events_total")]
    return int(sum(float(line.split()[-1]) for line in lines))


@pytest.mark.req("RDY-51", "RDY-11")
async def test_timestamps_are_sorted_within_the_delay_of_their_arrival(
    hub: LiveHub, zone: LiveZone
) -> None:
    """10.0 and 9.9 arrive in that order; with a delay of 200 ms 9.9 is sent first, and 10.0 after
    10.2.
    """
    zone.create_stream("orders")
    ordered(zone, "timestamp", order_options={"occur_delay_ms": 200})
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        ten = datetime.now(UTC)
        zone.emit("orders", named("10.0", time=ten.isoformat()))
        zone.emit("orders", named("9.9", time=at(-0.1, of=ten)))
        [first] = await reader.events(1)
        assert (first["event"]["name"], time.time() > ten.timestamp() + 0.1) == ("9.9", True)
        [second] = await reader.events(1)
        assert (second["event"]["name"], time.time() > ten.timestamp() + 0.2) == ("10.0", True)


@pytest.mark.req("FOX-12")
async def test_a_reply_that_arrives_first_is_held_until_its_request_is_delivered(
    hub: LiveHub, zone: LiveZone
) -> None:
    streams = [zone.create_stream(name) for name in ("requests", "replies")]
    ordered(zone, "causal", streams=streams, order_options={"hold_ms": 60_000})
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        await reader.listen("replies")
        zone.emit("replies", named("reply", correlation="r-1"))
        [seen] = await reader.events(1)
        assert seen["listener"] == "a"
        zone.emit("requests", named("other"))
        assert await names(reader, 1) == "other"
        zone.emit("requests", named("request", id="r-1"))
        found = await reader.events(2)
        assert [each["event"]["name"] for each in found] == ["request", "reply"]
        assert [each["stream"] for each in found] == ["requests", "replies"]


@pytest.mark.req("FOX-13")
@pytest.mark.parametrize(
    ("order", "expected"),
    [("causal", ["cause", "effect"]), ("fifo", ["effect", "cause"]), ("none", ["effect", "cause"])],
)
async def test_only_a_causal_session_waits(
    hub: LiveHub, zone: LiveZone, order: str, expected: list[str]
) -> None:
    zone.create_stream("orders")
    ordered(zone, order)
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        zone.emit("orders", [named("effect", cause="c"), named("cause", id="c")])
        assert [each["event"]["name"] for each in await reader.events(2)] == expected


@pytest.mark.req("FOX-13")
async def test_an_event_may_state_that_it_does_not_wait(hub: LiveHub, zone: LiveZone) -> None:
    """The default is that of the session; `causal` states it, `none` overrides it."""
    zone.create_stream("orders")
    ordered(zone, "causal", order_options={"hold_ms": 60_000})
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        effects = [
            named(name, cause="c", **order)
            for name, order in (
                ("1", {"order": "causal"}),
                ("2", {"order": "none"}),
                ("3", {}),
            )
        ]
        zone.emit("orders", effects)
        assert await names(reader, 1) == "2"
        zone.emit("orders", named("0", id="c"))
        assert await names(reader, 3) == "013"


@pytest.mark.parametrize("subprotocol", [JSON, PROTOBUF])
async def test_an_event_whose_cause_never_comes_says_that_it_is_out_of_order(
    hub: LiveHub, zone: LiveZone, subprotocol: str
) -> None:
    zone.create_stream("orders")
    ordered(zone, "causal", order_options={"hold_ms": 50})
    async with session(hub, zone.admin, subprotocol=subprotocol) as reader:
        await connect(reader)
        zone.emit("orders", [named("effect", cause="lost"), named("other")])
        other, effect = await reader.events(2)
        if subprotocol == PROTOBUF:
            assert [each["frame"].out_of_order for each in (other, effect)] == ["", "hold"]
        else:
            assert [each.get("out_of_order") for each in (other, effect)] == [None, "hold"]
        assert (other["sequence"], effect["sequence"]) == (2, 1)


@pytest.mark.req("FOX-21")
async def test_every_client_sees_causes_before_effects(hub: LiveHub, zone: LiveZone) -> None:
    """Three events, each the cause of the next, take different ways (streams) and arrive in the
    wrong order, the last one first. One client is away meanwhile; one is not interested in the
    event between.
    """
    streams = [zone.create_stream(name) for name in ("slow", "slower", "fast")]
    keys = {name: zone.key("listen:*", "manage:*", client=name) for name in ("b", "c", "away")}
    for name, key in {"a": zone.admin, **keys}.items():
        options = {"hold_ms": 60_000}
        create_session(zone, key=key, order="causal", order_options=options)
        interest = {"domain": "shop", **({"attributes": {"outer": True}} if name == "c" else {})}
        zone.register({"streams": streams, "session": "s", **interest}, key=key)
    async with (
        session(hub, zone.admin) as a,
        session(hub, keys["b"], web=1) as b,
        session(hub, keys["c"]) as c,
    ):
        for reader in (a, b, c):
            await connect(reader)
        outer = {"attributes": {"outer": True}}
        zone.emit("fast", named("e''", cause="e'", **outer))
        await a.listen("fast", start="oldest")
        [seen] = await a.events(1)
        assert seen["listener"] == "a", "the session holds it"
        zone.emit("slower", named("e'", id="e'", cause="e"))
        await b.listen("slower", start="oldest")
        [seen] = await b.events(1)
        assert seen["listener"] == "a", "the session holds it"
        zone.emit("slow", named("e", id="e", **outer))
        expected = ["e", "e'", "e''"]
        for reader in (a, b):
            assert [each["event"]["name"] for each in await reader.events(3)] == expected
        assert [each["event"]["name"] for each in await c.events(2)] == ["e", "e''"]
    async with session(hub, keys["away"], web=1) as away:
        await connect(away)
        assert [each["event"]["name"] for each in await away.events(3)] == expected
