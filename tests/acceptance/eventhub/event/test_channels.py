"""Channels: one bit each, filtering before the wire and without evaluation, immediate push."""

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from delivery.listening import protocol
from eventhub.base import limits
from registrations.filters.pairs import Pairs
from registrations.matching.alternatives import FilterMatcher
from tests.acceptance.matched_streams import match_work, wait_equal
from tests.acceptance.transports import ListenerSpec, in_process
from tests.acceptance.wire import EVENT, Emitter, session
from tests.busy import stretched
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
    assert tenths_s[8] < stretched(limits.HEAD_POLL_INTERVAL_S), tenths_s


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count every evaluation of a filter for an event in this process: of pairs, of another
    language, and of the registrations that a listener names.
    """
    found = Counter[str]()

    def counted(name: str, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        def evaluate_and_count(*args: Any) -> Any:
            found[name] += 1
            return evaluate(*args)

        return evaluate_and_count

    for owner, name in ((Pairs, "matches"), (protocol, "holds"), (FilterMatcher, "match")):
        monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
    return found


@pytest.mark.req("EMC-22")
async def test_a_listener_with_a_mask_alone_evaluates_nothing(
    hub: LiveHub, zone: LiveZone, evaluated: Counter[str]
) -> None:
    """Half of the events are on its channel, and every other kind of interest is evaluated for
    these, or for all without a mask.
    """
    zone.create_stream("audit")
    [made] = zone.register({"streams": ["audit"], "domain": "shop"})
    half = audited(zone)
    tree = {"language": "predicate", "filter": "(= @domain 'shop)"}
    cases: list[tuple[dict[str, Any], int, dict[str, int]]] = [
        ({"mask": 1}, half, {}),
        ({"mask": 1, "domain": "shop"}, half, {"matches": half}),
        ({"mask": 1, **tree}, half, {"holds": half}),
        ({"mask": 1, "registrations": [made["id"]]}, half, {"match": half}),
        ({"domain": "shop"}, 2 * half, {"matches": 2 * half}),
    ]
    for interest, events, expected in cases:
        evaluated.clear()
        spec = ListenerSpec(hub, zone.admin, "audit", interest=interest)
        async with aclosing(in_process(spec)) as listener:  # type: ignore[type-var]
            for _ in range(events):
                await anext(listener)
        assert evaluated == expected, interest


@pytest.mark.req("EMC-22")
async def test_a_websocket_with_a_mask_alone_causes_no_match_work(
    hub: LiveHub, zone: LiveZone
) -> None:
    """All work that the metrics show is that of the listener that names a registration."""
    zone.create_stream("audit", matching="scan")  # no other listener of the hub matches this way
    [made] = zone.register({"streams": ["audit"], "domain": "shop"})
    before = match_work(hub, ["listeners"], "scan").touched
    async with session(hub, zone.admin) as masked, session(hub, zone.admin) as named:
        await masked.listen("audit", mask="1")
        await named.listen("audit", registrations=[made["id"]])
        half = audited(zone)
        await masked.events(half)
        await named.events(2 * half)
    expected = before + 2 * half
    wait_equal(lambda: match_work(hub, ["listeners"], "scan").touched, expected)


def audited(zone: LiveZone) -> int:
    """Emit events, each second one on channel 1; return their number."""
    masks = (2, 1) * (EVALUATED_EVENTS // 2)
    assert zone.emit("audit", [{**EVENT, "mask": mask} for mask in masks]).status == 200
    return EVALUATED_EVENTS // 2
