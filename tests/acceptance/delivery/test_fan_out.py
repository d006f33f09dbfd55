"""New events in one pass: listeners at the head, behind, filtered, with a window, slow, refused."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from delivery.listening.batch import BatchLimits
from delivery.listening.frames import LineFrames
from delivery.listening.listener import StreamListener
from delivery.listening.request import ListenRequest
from delivery.listening.single_reader import SingleReader, batches
from eventhub.base.errors import Unauthenticated
from eventhub.eventlog.stored import StoredEvent
from tests.acceptance.one_process import services_of
from tests.acceptance.transports import ListenerSpec, server_sent
from tests.acceptance.wire import EVENT, JSON, PROTOBUF, numbered, session, sockets, until
from tests.live import LiveHub, LiveZone

EVENTS = 300
POLL_S = 60
LARGE = "x" * 900_000  # more than the buffers of a connection
LARGE_ONES = 12  # which together exceed what the hub lets wait for a connection


def sequences(messages: Sequence[dict[str, Any]]) -> list[int]:
    return [message["sequence"] for message in messages]


async def emit_all(zone: LiveZone, events: list[dict[str, Any]], size: int) -> None:
    """Emit events in bodies of so many, with other work between two bodies."""
    for at in range(0, len(events), size):
        answer = await asyncio.to_thread(zone.emit, "orders", events[at : at + size])
        assert answer.status == 200, answer


@pytest.mark.parametrize("subprotocol", [JSON, PROTOBUF])
@pytest.mark.parametrize("compression", [None, "deflate"])
async def test_listeners_at_the_head_and_behind_get_all_events_in_order(
    hub: LiveHub, zone: LiveZone, subprotocol: str, compression: str | None
) -> None:
    """Some start at the head, some at the beginning while events come; each has its own selection,
    and several are on one socket.
    """
    zone.create_stream("orders")
    events = [
        {
            **event,
            "type": f"t{n % 3}",
            "mask": 1 + n % 2,
            "attributes": {"n": n, "even": n % 2 == 0},
        }
        for n, event in enumerate(numbered(1, EVENTS))
    ]
    selections: dict[str, tuple[dict[str, Any], list[int]]] = {
        "all": ({}, list(range(1, EVENTS + 1))),
        "mask": ({"mask": 1}, [n + 1 for n in range(EVENTS) if n % 2 == 0]),
        "pairs": ({"type": "t1"}, [n + 1 for n in range(EVENTS) if n % 3 == 1]),
        "number": ({"attributes": {"n": 1}}, [2]),
        "boolean": ({"attributes": {"even": True}}, [n + 1 for n in range(EVENTS) if n % 2 == 0]),
        "text": (
            {"language": "predicate", "filter": "(< n 7)"},
            list(range(1, 8)),
        ),
        "none": ({"type": "t9"}, []),
    }
    options: dict[str, Any] = {"subprotocol": subprotocol, "compression": compression}
    async with AsyncExitStack() as stack:
        readers = [
            await stack.enter_async_context(session(hub, zone.admin, **options)) for _ in range(3)
        ]
        for reader in readers[:2]:
            for name, (selection, _) in selections.items():
                await reader.listen("orders", name=name, **selection)
        emitting = asyncio.create_task(emit_all(zone, events, 7))
        await until(lambda: emitting.done() or zone_head(zone) > EVENTS // 3)
        for name, (selection, _) in selections.items():
            await readers[2].listen("orders", name=name, start="oldest", **selection)
        count = sum(len(expected) for _, expected in selections.values())
        for reader in readers:
            before = [message for message in reader.skipped if message["op"] == "event"]
            received = [*before, *await reader.events(count - len(before))]
            for name, (_, expected) in selections.items():
                own = [message for message in received if message["listener"] == name]
                assert sequences(own) == expected
                assert [previous(message) for message in own] == [0, *expected[:-1]][: len(own)]
            assert await reader.nothing_waits()
        await emitting


def zone_head(zone: LiveZone) -> int:
    page = zone.hub.call("GET", "/v1/streams/orders/events?from=now", key=zone.admin).json
    return int(page["cursor"]["sequence"])


def previous(message: dict[str, Any]) -> int:
    return int(message["frame"].prev if "frame" in message else message["prev"])


async def test_a_listener_that_fell_behind_is_at_the_head_again_after_its_acknowledgement(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    async with session(hub, zone.admin) as behind, session(hub, zone.admin) as other:
        await behind.listen("orders", window=2)
        await other.listen("orders")
        for first in range(1, 22, 7):
            await emit_all(zone, numbered(1, 7), 3)
            assert sequences(await other.events(7)) == list(range(first, first + 7))
            for at in range(first, first + 7, 2):
                count = min(2, first + 7 - at)
                assert sequences(await behind.events(count)) == list(range(at, at + count))
                assert await behind.nothing_waits()
                await behind.say("ack", listener="a", sequence=at + count - 1)


async def test_a_socket_that_is_not_read_delays_no_other_and_loses_nothing(
    hub: LiveHub, zone: LiveZone
) -> None:
    """The pass wrote into a full buffer, or waited for it."""
    zone.create_stream("orders")
    host, port = hub.web[0].url.removeprefix("http://").split(":")
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    small.connect((host, int(port)))
    small.setblocking(False)
    async with (
        session(hub, zone.admin, sock=small, max_queue=1) as slow,
        session(hub, zone.admin) as other,
    ):
        for reader in (slow, other):
            await reader.listen("orders")
        for n in range(1, LARGE_ONES + 1):
            zone.emit("orders", {**EVENT, "body": LARGE})
            assert sequences(await other.events(1)) == [n], "the others wait for the slow one"
        zone.emit("orders", numbered(1, 50))
        assert sequences(await other.events(50)) == list(range(LARGE_ONES + 1, LARGE_ONES + 51))
        received = sequences(await slow.events(LARGE_ONES + 50))
        assert received == list(range(1, LARGE_ONES + 51))
        zone.emit("orders", EVENT)  # and both are at the head again
        for reader in (slow, other):
            assert sequences(await reader.events(1)) == [LARGE_ONES + 51]
            assert await reader.nothing_waits()


async def test_server_sent_events_and_polls_get_the_events_of_the_pass(
    hub: LiveHub, zone: LiveZone
) -> None:
    """A poll is not woken by events that it does not match, and answers with the first that it
    does.
    """
    zone.create_stream("orders")
    spec = ListenerSpec(hub, zone.admin, "orders", "oldest", web=0)
    before = sockets(hub)
    path = f"/v1/streams/orders/events?from=now&timeout={POLL_S}&type=matched"
    polling = asyncio.create_task(asyncio.to_thread(hub.call, "GET", path, key=zone.admin))
    async with aclosing(server_sent(spec)) as events:  # type: ignore[type-var]
        first = asyncio.ensure_future(anext(events))
        await until(lambda: sockets(hub) == before + 2)
        await emit_all(zone, numbered(1, 60), 5)
        received = [await first, *[await anext(events) for _ in range(59)]]
        assert [event.sequence for event in received] == list(range(1, 61))
        assert [event.prev for event in received] == list(range(60))
        zone.emit("orders", {**EVENT, "type": "matched"})
        assert (await anext(events)).sequence == 61
    async with asyncio.timeout(POLL_S / 2):
        page = (await polling).json
    assert sequences(page["events"]) == [61]


class Collected:
    """A connection that keeps what is written directly."""

    variant = "collected"

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def prepare(self, frames: Sequence[bytes]) -> bytes:
        return b"".join(frames)

    def write_prepared(self, data: bytes) -> bool:
        self.written.append(data)
        return True


async def test_a_key_revoked_between_the_commit_and_the_pass_gets_nothing_more(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    key = zone.key("listen:*", "emit:*", client="dismissed")
    async with services_of(hub) as services:
        principal = await services.authorizer.authenticate(key)
        reader = SingleReader(services.authorizer, services.clock, key, principal)
        reader.writer = written = Collected()
        listener = await StreamListener.open(services, principal, ListenRequest("orders", "now"))
        ring = listener._follower.ring

        async def receive() -> None:
            form, size = LineFrames(), BatchLimits()
            async with aclosing(batches(reader, listener, form, size)) as found:
                async for _ in found:
                    pass

        receiving = asyncio.create_task(receive())
        await until(lambda: listener.at_head)
        zone.emit("orders", EVENT)
        await until(lambda: len(written.written) == 1)
        payload = ring.after(0, 1)[0].payload  # type: ignore[index]

        class Committer(asyncio.Event):
            """Commits the next event at the moment at which the revocation is known."""

            def set(self) -> None:
                ring.push([StoredEvent(ring.head.segment, 2, 1 << 63 | 1, 0, payload)])

        services.authorizer.wakers.add(Committer())
        zone.revoke(key)
        with pytest.raises(Unauthenticated):
            await receiving
        assert ring.next == 3, "the event came"
        assert len(written.written) == 1
        await listener.close()
