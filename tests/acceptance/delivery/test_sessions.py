"""Websockets: several listeners, acks, both subprotocols, compression, expiry."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from eventhub.event import event_pb2
from tests.acceptance.wire import EVENT, JSON, PROTOBUF, numbered, session
from tests.live import LiveHub, LiveZone


async def test_several_listeners_share_a_socket_and_one_stops_alone(
    hub: LiveHub, zone: LiveZone
) -> None:
    """The end of a listener left the others of its stream unwoken until the next ping."""
    zone.create_stream("orders")
    zone.create_stream("alarms")
    async with session(hub, zone.admin) as reader:
        for name, stream, selection in (
            ("all", "orders", {}),
            ("odd", "orders", {"mask": 1}),
            ("alarms", "alarms", {}),
        ):
            await reader.listen(stream, name=name, **selection)
        zone.emit("orders", [{**EVENT, "mask": 1 + n % 2} for n in range(4)])
        zone.emit("alarms", EVENT)
        events = await reader.events(7)
        by_listener = {
            name: [(e["prev"], e["sequence"]) for e in events if e["listener"] == name]
            for name in ("all", "odd", "alarms")
        }
        assert by_listener == {
            "all": [(0, 1), (1, 2), (2, 3), (3, 4)],
            "odd": [(0, 1), (1, 3)],
            "alarms": [(0, 1)],
        }
        await reader.say("stop", listener="all")
        stopped = await reader.hear_op("stopped")
        assert (stopped["listener"], stopped["cursor"]["sequence"]) == ("all", 4)
        zone.emit("orders", [{**EVENT, "mask": 1}, {**EVENT, "mask": 2}])
        [event] = await reader.events(1)
        assert (event["listener"], event["prev"], event["sequence"]) == ("odd", 3, 5)
        assert await reader.nothing_waits()
        await reader.listen("orders", name="all", start=stopped["cursor"])
        assert [e["sequence"] for e in await reader.events(2)] == [5, 6]


async def test_a_window_of_two_holds_the_third_event_back_until_an_ack(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 7))
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest", window=2)
        assert [e["sequence"] for e in await reader.events(2)] == [1, 2]
        assert await reader.nothing_waits()
        await reader.say("ack", listener="a", sequence=1)
        assert [e["sequence"] for e in await reader.events(1)] == [3]
        assert await reader.nothing_waits()
        await reader.say("ack", listener="a", sequence=1)
        assert await reader.nothing_waits(), "an old ack freed something"
        await reader.say("ack", listener="a", sequence=3)
        assert [e["sequence"] for e in await reader.events(2)] == [4, 5]
        await reader.listen("orders", name="b", start="oldest")
        assert {e["listener"] for e in await reader.events(7)} == {"b"}
        await reader.say("ack", listener="a", sequence=99)
        assert [(e["listener"], e["sequence"]) for e in await reader.events(2)] == [
            ("a", 6),
            ("a", 7),
        ]
        zone.emit("orders", numbered(8, 8))
        later = await reader.events(1)
        assert (later[0]["listener"], later[0]["sequence"]) == ("b", 8)


async def test_the_event_in_a_binary_frame_is_the_stored_bytes(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", [{**EVENT, "attributes": {"n": n}, "body": ["ü" * n]} for n in range(50)])
    async with session(hub, zone.admin, subprotocol=PROTOBUF) as reader:
        assert reader.socket.subprotocol == PROTOBUF
        await reader.listen("orders", start="oldest")
        events = await reader.events(50)
    for number in (1, 2, 50):
        frame = events[number - 1]["frame"]
        assert (frame.sequence, frame.prev) == (number, number - 1)
        assert frame.liveness == event_pb2.PLAYBACK
        path = f"/v1/streams/orders/events/{number}"
        etag = hub.call("GET", path, key=zone.admin).headers["etag"]
        assert etag == f'"{hashlib.sha256(frame.event).hexdigest()}"'


async def test_json_and_binary_readers_receive_the_same(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    async with (
        session(hub, zone.admin, subprotocol=JSON) as text,
        session(hub, zone.admin, subprotocol=PROTOBUF) as binary,
    ):
        for reader in (text, binary):
            await reader.listen("orders", name='quoted "a"')
        zone.emit(
            "orders",
            [{**EVENT, "mask": str(2**64 - 1), "key": "k", "time": "2026-01-01T00:00:00Z"}],
        )
        [one], [two] = await text.events(1), await binary.events(1)
    event = event_pb2.Event.FromString(two["frame"].event)
    assert (one["listener"], one["segment"]) == (two["frame"].listener, two["frame"].segment)
    assert (one["event"]["mask"], one["event"]["key"]) == (str(event.mask), event.key)
    assert one["event"]["time"] == "2026-01-01T00:00:00.000000Z"
    assert event.time_us == 1_767_225_600_000_000


async def test_an_unknown_subprotocol_is_refused(hub: LiveHub, zone: LiveZone) -> None:
    with pytest.raises(InvalidStatus) as caught:
        async with session(hub, zone.admin, subprotocol="eventhub.v9"):
            pass
    assert caught.value.response.status_code == 400
    assert json.loads(caught.value.response.body)["code"] == "invalid_field"


class Counting(ClientConnection):
    """A websocket that counts the bytes that arrive."""

    received = 0

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        super().data_received(data)


@pytest.mark.parametrize("compression", ["deflate", None])
async def test_frames_are_compressed_when_the_reader_offers_it(
    hub: LiveHub, zone: LiveZone, compression: str | None
) -> None:
    zone.create_stream("orders")
    text = "abc" * 5_000
    options: dict[str, Any] = {"compression": compression, "create_connection": Counting}
    async with session(hub, zone.admin, **options) as reader:
        assert reader.socket.response is not None
        offered = reader.socket.response.headers.get("Sec-WebSocket-Extensions", "")
        assert ("permessage-deflate" in offered) == (compression is not None)
        await reader.listen("orders")
        before = reader.socket.received  # type: ignore[attr-defined]
        zone.emit("orders", {**EVENT, "body": text})
        [event] = await reader.events(1)
        received = reader.socket.received - before  # type: ignore[attr-defined]
    assert event["event"]["body"] == text
    assert (received < len(text) / 10) == (compression is not None)


async def test_expired_events_are_skipped_and_prev_still_proves_completeness(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    now = datetime.now(UTC)
    ends = [None, now - timedelta(seconds=1), now + timedelta(hours=1), now - timedelta(days=1)]
    zone.emit("orders", [{**EVENT, "expires_at": end and end.isoformat()} for end in [*ends, None]])
    async with session(hub, zone.admin) as reader:
        await reader.listen("orders", start="oldest")
        events = await reader.events(3)
        assert await reader.nothing_waits()
    assert [(e["prev"], e["sequence"]) for e in events] == [(0, 1), (1, 3), (3, 5)]
