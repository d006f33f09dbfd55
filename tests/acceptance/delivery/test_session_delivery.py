"""Consumer sessions over the websocket: connecting, acknowledging, and what comes again."""

from typing import Any

import pytest

from eventhub.event import event_pb2
from tests.acceptance.consumers import (
    SHOP,
    acknowledge,
    ask,
    change,
    connect,
    consumer,
    create_session,
    numbers,
)
from tests.acceptance.wire import EVENT, PROTOBUF, numbered, session
from tests.live import LiveHub, LiveZone


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def test_events_of_a_session_name_it_and_its_stream(hub: LiveHub, orders: LiveZone) -> None:
    made = create_session(orders, window=50)
    [registered] = orders.register({**SHOP, "session": "s"})
    orders.emit("orders", [EVENT, {**EVENT, "domain": "bank"}, EVENT])
    async with session(hub, orders.admin) as reader:
        connected = await connect(reader)
        [stream] = connected["streams"]
        assert (stream["stream"], stream["cursor"]["sequence"], stream["head"]) == ("orders", 0, 3)
        assert (connected["window"], connected["order"]) == (50, "fifo")
        assert connected["quality"] == made["quality"] == "reliable"
        one, two = await reader.events(2)
        assert "listener" not in one
        assert (one["session"], one["stream"], one["registrations"]) == (
            "s",
            "orders",
            [registered["id"]],
        )
        assert [(e["prev"], e["sequence"]) for e in (one, two)] == [(0, 1), (1, 3)]
        assert one["liveness"] == "recovery"
        orders.emit("orders", EVENT)
        [live] = await reader.events(1)
        assert (live["prev"], live["sequence"], live["liveness"]) == (3, 4, "live")
        assert await reader.nothing_waits()


async def test_binary_frames_name_the_session_too(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", EVENT)
    async with session(hub, orders.admin, subprotocol=PROTOBUF) as reader:
        await connect(reader)
        [event] = await reader.events(1)
    frame = event["frame"]
    assert (frame.session, frame.stream, frame.listener) == ("s", "orders", "")
    assert event_pb2.Event.FromString(frame.event).domain == "shop"


@pytest.mark.req("RDY-48")
async def test_what_is_not_acknowledged_comes_again_and_nothing_else(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 6))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 6) == [1, 2, 3, 4, 5, 6]
        await acknowledge(reader, 5, through=2)
    async with session(hub, orders.admin, web=1) as reader:
        [stream] = (await connect(reader))["streams"]
        assert stream["cursor"]["sequence"] == 2
        assert await numbers(reader, 3) == [3, 4, 6]
        await acknowledge(reader, 3, 4, 6)
    async with session(hub, orders.admin) as reader:
        [stream] = (await connect(reader))["streams"]
        assert stream["cursor"]["sequence"] == 6
        orders.emit("orders", EVENT)
        assert await numbers(reader, 1) == [7]
        assert await reader.nothing_waits()


async def test_acknowledgements_without_an_id_are_stored_when_the_socket_closes(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 3))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        await numbers(reader, 3)
        await reader.say("ack", session="s", stream="orders", sequence=2)
        await reader.say("disconnect", session="s")
        ended = await reader.hear_op("disconnected")
        assert ended == {"op": "disconnected", "session": "s", "reason": "stopped"}
        await connect(reader)
        assert await numbers(reader, 1) == [3]


async def test_slow_acknowledgements_hold_events_back(hub: LiveHub, orders: LiveZone) -> None:
    """The window counts all streams of the session together."""
    orders.create_stream("refunds")
    create_session(orders, window=2)
    orders.register({**SHOP, "streams": ["orders", "refunds"], "session": "s"})
    orders.emit("orders", numbered(1, 2))
    orders.emit("refunds", numbered(1, 2))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        first = [(e["stream"], e["sequence"]) for e in await reader.events(2)]
        assert await reader.nothing_waits()
        for stream, sequence in first:
            await reader.say("ack", session="s", stream=stream, sequences=[sequence])
        second = [(e["stream"], e["sequence"]) for e in await reader.events(2)]
        assert sorted(first + second) == [
            (stream, n) for stream in ("orders", "refunds") for n in (1, 2)
        ]
        orders.emit("orders", numbered(3, 5))
        assert await reader.nothing_waits()
        await reader.say("credit", session="s", events=4)
        assert await numbers(reader, 2) == [3, 4]
        assert await reader.nothing_waits()


@pytest.mark.req("RDY-06")
async def test_what_matches_while_delivery_is_disabled_comes_once_after_it(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Disconnected on request, not suspended: matching goes on (RDY-05 stops it)."""
    made = consumer(orders)
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        change(orders, made, disconnected=True)
        ended = await reader.hear_op("disconnected")
        assert ended == {"op": "disconnected", "session": "s", "reason": "request"}
        orders.emit("orders", EVENT)
        refused = await ask(reader)
        assert (refused["status"], refused["code"]) == (409, "session_disconnected")
        assert refused["session"] == "s"
        change(orders, made, disconnected=False)
        await connect(reader)
        assert await numbers(reader, 1) == [1]
        await acknowledge(reader, through=1)
        await reader.say("disconnect", session="s")
        await reader.hear_op("disconnected")
        await connect(reader)
        assert await reader.nothing_waits()


@pytest.mark.req("RDY-05")
async def test_what_is_emitted_while_a_session_is_suspended_never_comes(
    hub: LiveHub, orders: LiveZone
) -> None:
    made = consumer(orders)
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        change(orders, made, suspended=True)
        orders.emit("orders", EVENT)
        change(orders, made, suspended=False)
        orders.emit("orders", EVENT)
        assert await numbers(reader, 1) == [2]


@pytest.mark.parametrize("web", [0, 1])
async def test_a_second_connection_replaces_the_first(
    hub: LiveHub, orders: LiveZone, web: int
) -> None:
    """In the same process and in another one. Late acknowledgements of the first have no effect."""
    consumer(orders)
    orders.emit("orders", numbered(1, 2))
    async with session(hub, orders.admin) as old, session(hub, orders.admin, web=web) as new:
        await connect(old)
        assert await numbers(old, 2) == [1, 2]
        await connect(new)
        await old.say("ack", session="s", stream="orders", sequence=2)
        ended = await old.hear_op("disconnected")
        assert ended == {"op": "disconnected", "session": "s", "reason": "replaced"}
        assert await numbers(new, 2) == [1, 2]
        await acknowledge(new, through=1)
        orders.emit("orders", EVENT)
        assert await numbers(new, 1) == [3]
        await old.say("ping")
        await old.hear_op("pong")
        assert [message for message in old.skipped if message["op"] == "event"] == []
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 2) == [2, 3]


@pytest.mark.req("RDY-52")
async def test_one_socket_carries_three_sessions_beside_a_listener(
    hub: LiveHub, orders: LiveZone
) -> None:
    for name, customer in (("all", None), ("one", 1), ("two", 2)):
        create_session(orders, name)
        attributes = {} if customer is None else {"customer": customer}
        orders.register({**SHOP, "attributes": attributes, "session": name})
    async with session(hub, orders.admin) as reader:
        for name in ("all", "one", "two"):
            await connect(reader, name)
        await reader.listen("orders")
        orders.emit("orders", [{**EVENT, "attributes": {"customer": n}} for n in (1, 2, 3)])
        received = await reader.events(8)
        by_subject: dict[str, list[int]] = {}
        for event in received:
            by_subject.setdefault(event.get("session", ""), []).append(event["sequence"])
        assert by_subject == {"all": [1, 2, 3], "one": [1], "two": [2], "": [1, 2, 3]}
        await reader.say("disconnect", session="all")
        await reader.hear_op("disconnected")
        orders.emit("orders", {**EVENT, "attributes": {"customer": 1}})
        rest = await reader.events(2)
        assert sorted(event.get("session", "") for event in rest) == ["", "one"]


async def test_a_stream_of_a_new_registration_appears(hub: LiveHub, orders: LiveZone) -> None:
    """Registered through one process, connected to the other; the stream's events count from the
    registration on.
    """
    orders.create_stream("refunds")
    consumer(orders)
    async with session(hub, orders.admin, web=1) as reader:
        await connect(reader)
        orders.emit("refunds", EVENT)
        orders.register({**SHOP, "streams": ["refunds"], "session": "s"})
        orders.emit("refunds", EVENT)
        started = await reader.hear_op("listening", "event")
        assert started["op"] == "listening"
        assert (started["session"], started["stream"]) == ("s", "refunds")
        assert started["cursor"]["sequence"] == 1
        [event] = await reader.events(1)
        assert (event["stream"], event["sequence"]) == ("refunds", 2)


async def test_changed_registrations_count_exactly(hub: LiveHub, orders: LiveZone) -> None:
    """Each change and the events after it are in effect at once, in the other process, too."""
    create_session(orders)
    [made] = orders.register({**SHOP, "attributes": {"n": 0}, "session": "s"})
    path = f"/v1/registrations/{made['id']}"
    async with session(hub, orders.admin, web=1) as reader:
        await connect(reader)
        for n in range(1, 20):
            answer = hub.call("PATCH", path, {"attributes": {"n": n}}, key=orders.admin)
            assert answer.status == 200, answer
            orders.emit("orders", numbered(n - 1, n))
        assert await numbers(reader, 19) == [2 * n for n in range(1, 20)]
        assert hub.call("DELETE", path, key=orders.admin).status == 204
        orders.emit("orders", numbered(19, 19))
        assert await reader.nothing_waits()


@pytest.mark.req("RDY-48")
async def test_best_effort_starts_at_the_end_of_the_stream(hub: LiveHub, orders: LiveZone) -> None:
    """What is emitted while it is away is lost, as documented; no acknowledgements are needed."""
    consumer(orders, quality="best_effort", window=1)
    orders.emit("orders", EVENT)
    async with session(hub, orders.admin) as reader:
        connected = await connect(reader)
        assert (connected["window"], connected["quality"]) == (None, "best_effort")
        orders.emit("orders", numbered(2, 4))
        assert await numbers(reader, 3) == [2, 3, 4]
    orders.emit("orders", EVENT)
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        orders.emit("orders", EVENT)
        assert await numbers(reader, 1) == [6]


@pytest.mark.req("RDY-32", "FOX-14")
async def test_destinations_select_one_session_of_a_client(hub: LiveHub, orders: LiveZone) -> None:
    """By default an event goes to the session that owns the registration. Destinations override
    that: `client/session` is that session alone, `client` all of the client's.
    """
    for name in ("x", "y"):
        consumer(orders, name)
    stranger = orders.key("listen:*", "manage:*", client="stranger")
    create_session(orders, "x", key=stranger)
    orders.register({**SHOP, "session": "x"}, key=stranger)
    cases: list[list[str]] = [[], ["tester/x"], ["tester"], ["stranger/x", "tester/y"], ["nobody"]]
    async with session(hub, orders.admin) as own, session(hub, stranger) as other:
        for name in ("x", "y"):
            await connect(own, name)
        await own.listen("orders")
        await connect(other, "x")
        sent = orders.emit("orders", [{**EVENT, "destinations": each} for each in cases])
        assert sent.status == 200, sent
        received: dict[str, list[int]] = {}
        for event in await own.events(3 + 3 + 2):
            received.setdefault(event.get("session", ""), []).append(event["sequence"])
        assert received == {"x": [1, 2, 3], "y": [1, 3, 4], "": [1, 3]}
        assert await numbers(other, 2) == [1, 4]
        assert await own.nothing_waits()
        assert await other.nothing_waits()


async def test_only_consumer_sessions_of_the_own_client_connect(
    hub: LiveHub, orders: LiveZone
) -> None:
    create_session(orders, "a", kind="admin")
    consumer(orders)
    stranger = orders.key("listen:*", client="stranger")
    async with session(hub, orders.admin) as reader, session(hub, stranger) as other:
        for socket, name, status, code in (
            (reader, "a", 403, "wrong_session_kind"),
            (reader, "nobody", 404, "unknown_session"),
            (other, "s", 404, "unknown_session"),
        ):
            refused = await ask(socket, name)
            assert (refused["status"], refused["code"], refused["session"]) == (status, code, name)
        await connect(reader)
        assert (await ask(reader))["code"] == "session_connected"
        on = {"session": "s", "stream": "orders"}
        absent = "session_not_connected"
        for op, fields, code, field in (
            ("ack", {**on, "session": "t", "sequence": 1}, absent, None),
            ("ack", {**on, "stream": "other", "sequence": 1}, absent, "stream"),
            ("ack", {"session": "s", "sequence": 1}, "missing_field", "stream"),
            ("ack", on, "missing_field", "sequence"),
            ("ack", {"listener": "a", "sequence": 1, "id": "1"}, "unknown_field", "id"),
            ("ack", {**on, "listener": "a", "sequence": 1}, "unknown_field", "listener"),
            ("credit", {"session": "s", "events": 0}, "invalid_field", "events"),
            ("disconnect", {"session": "t"}, absent, None),
        ):
            await reader.say(op, **fields)
            refused = await reader.hear_op("error")
            assert (refused["code"], refused["position"].get("field")) == (code, field), refused


async def test_a_deleted_session_ends_its_connection(hub: LiveHub, orders: LiveZone) -> None:
    made = consumer(orders)
    async with session(hub, orders.admin, web=1) as reader:
        await connect(reader)
        path = f"/v1/sessions/{made['id']}"
        assert hub.call("DELETE", path, key=orders.admin).status == 204
        ended = await reader.hear_op("disconnected")
        assert (ended["session"], ended["reason"]) == ("s", "deleted")
        assert (await ask(reader))["code"] == "unknown_session"


async def test_an_acknowledgement_does_not_overtake_the_message_before_it(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It needs no task of its own, where nothing that came before is under way."""
    consumer(orders)
    orders.emit("orders", numbered(1, 3))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 2) == [1, 2]
        await reader.say("ack", session="s", stream="orders", sequence=1)
        await reader.say("disconnect", session="s")
        await reader.say("ack", session="s", stream="orders", sequence=2)
        assert (await reader.hear_op("disconnected"))["reason"] == "stopped"
        assert (await reader.hear())["code"] == "session_not_connected"
        await connect(reader)
        assert await numbers(reader, 1) == [2]


async def test_changed_settings_apply_to_the_connection(hub: LiveHub, orders: LiveZone) -> None:
    """The window and the order at once; for another quality the hub connects the session again."""
    made = consumer(orders, window=1)
    orders.emit("orders", numbered(1, 4))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [1]
        assert await reader.nothing_waits()
        change(orders, made, window=3)
        changed: dict[str, Any] = await reader.hear_op("changed")
        assert (changed["session"], changed["window"]) == ("s", 3)
        assert await numbers(reader, 2) == [2, 3]
        change(orders, made, quality="best_effort")
        again = await reader.hear_op("connected")
        assert (again["window"], again["quality"]) == (None, "best_effort")
        orders.emit("orders", EVENT)
        assert await numbers(reader, 1) == [5]
