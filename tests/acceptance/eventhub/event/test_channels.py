"""Channels: one bit each, filtering before the wire and without evaluation, immediate push."""

import asyncio
import json
import statistics
import time
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.pairs import Pairs
from tests.acceptance.eventhub.eventlog.test_log_order import in_process, take
from tests.acceptance.wire import EVENT, Emitter, session
from tests.live import LiveHub, LiveZone

SPARSE_EVENTS = 150
EVALUATED_EVENTS = 40


@pytest.mark.req("EMC-19")
@pytest.mark.parametrize("mask", ["3", 3, "0", 0, "5", str(1 << 63), "-1"])
def test_a_channel_that_is_not_one_bit_is_refused(
    hub: LiveHub, zone: LiveZone, mask: str | int
) -> None:
    answer = hub.call("PUT", "/v1/channels/disk", {"mask": mask}, key=zone.admin)
    assert answer.status == 400
    if mask in ("3", 3):
        answer.refused(400, "not_power_of_two")


@pytest.mark.req("EMC-19")
async def test_an_event_on_disk_1_and_security_4_stores_mask_5(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.define_channel("disk", 0)
    zone.define_channel("security", 2)
    zone.create_stream("audit")
    zone.emit("audit", {**EVENT, "channels": ["disk", "security"]})
    zone.emit("audit", EVENT)
    masks = [
        hub.call("GET", f"/v1/streams/audit/events/{n}", key=zone.admin).json["mask"]
        for n in (1, 2)
    ]
    assert masks == ["5", str(1 << 63)]
    async with session(hub, zone.admin) as reader:
        await reader.listen("audit", start="oldest", mask=["security"])
        assert [event["event"]["mask"] for event in await reader.events(1)] == ["5"]
        assert await reader.nothing_waits()


class Counting(ClientConnection):
    """A websocket that counts the received bytes of its connection."""

    bytes_received = 0

    def data_received(self, data: bytes) -> None:
        self.bytes_received += len(data)
        super().data_received(data)


def wire_bytes(text: str) -> int:
    """Return the size of a text frame with its header, RFC 6455 5.2."""
    size = len(text.encode())
    return size + (2 if size < 126 else 4)


@pytest.mark.req("EMC-20")
async def test_a_listener_of_mask_4_gets_the_third_and_fourth_event_and_no_other_byte(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("audit")
    async with session(hub, zone.admin, create_connection=Counting) as reader:
        await reader.listen("audit", mask="4")
        before = reader.socket.bytes_received  # type: ignore[attr-defined]
        zone.emit("audit", [{**EVENT, "mask": mask} for mask in (1, 2, 4, 5)])
        frames = [str(await reader.frame()) for _ in range(2)]
        assert await reader.nothing_waits()
        received = reader.socket.bytes_received - before  # type: ignore[attr-defined]
    events = [json.loads(frame) for frame in frames]
    assert [(e["sequence"], e["prev"], e["event"]["mask"]) for e in events] == [
        (3, 0, "4"),
        (4, 3, "5"),
    ]
    pong = wire_bytes('{"op":"pong","id":"probe"}')
    assert received == sum(wire_bytes(frame) for frame in frames) + pong


@pytest.mark.req("EMC-33")
@pytest.mark.parametrize("reading", [0, 1], ids=["one process", "two processes"])
async def test_one_sparse_event_is_pushed_without_a_second_one(
    hub: LiveHub, zone: LiveZone, reading: int
) -> None:
    """Each event is emitted only after the one before has arrived: a batching hub would never
    finish. A wake-up that is lost costs up to HEAD_POLL_INTERVAL_S.
    """
    zone.create_stream("sparse")
    took_s: list[float] = []
    async with session(hub, zone.admin, web=reading) as reader:
        await reader.listen("sparse")
        with Emitter(zone, web=0) as emitter:
            for number in range(1, SPARSE_EVENTS + 1):
                began_s = time.perf_counter()
                posting = asyncio.create_task(asyncio.to_thread(emitter.numbers, "sparse", EVENT))
                [event] = await reader.events(1)
                took_s.append(time.perf_counter() - began_s)
                assert await posting == [event["sequence"]] == [number]
    tenths_s = statistics.quantiles(took_s, n=10)
    assert tenths_s[4] < limits.HEAD_POLL_INTERVAL_S / 5, tenths_s
    assert tenths_s[8] < limits.HEAD_POLL_INTERVAL_S, tenths_s


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """Record every event for which a filter is evaluated in this process."""
    found: list[Event] = []
    evaluate = Pairs.matches

    def record(self: Pairs, event: Event) -> bool:
        found.append(event)
        return evaluate(self, event)

    monkeypatch.setattr(Pairs, "matches", record)
    return found


@pytest.mark.req("EMC-22")
@pytest.mark.parametrize(
    ("interest", "expected"),
    [
        ({"mask": 1}, 0),  # channels alone
        (
            {"mask": 1, "domain": "shop"},
            EVALUATED_EVENTS // 2,
        ),  # pairs, for the events on the channels
        ({"domain": "shop"}, EVALUATED_EVENTS),
    ],
)
async def test_a_listener_with_a_mask_alone_evaluates_nothing(
    hub: LiveHub, zone: LiveZone, evaluated: list[Event], interest: dict[str, Any], expected: int
) -> None:
    zone.define_channel("disk", 0)
    zone.define_channel("net", 1)
    zone.create_stream("audit")
    zone.emit(
        "audit",
        [{**EVENT, "channels": [name]} for name in ("net", "disk")] * (EVALUATED_EVENTS // 2),
    )
    async with in_process(hub, zone) as caller:
        count = EVALUATED_EVENTS // 2 if "mask" in interest else EVALUATED_EVENTS
        assert len(await take(caller, "audit", count, **interest)) == count
    assert len(evaluated) == expected
