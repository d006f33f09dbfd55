"""Sequences, atomic appends, immutability and segments through the public API (EMC-02, 03, 04, 13,
14).
"""

import asyncio
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.wire import EVENT, Emitter, numbered, session
from tests.live import LiveHub, LiveZone

EMITS_TIMEOUT_S = 30.0
TERMINATE = """
    WITH appending AS MATERIALIZED (
        SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'eventhub append'
    ) SELECT pg_terminate_backend(pid) FROM appending
"""


@pytest.mark.req("EMC-02")
def test_eight_threads_of_a_thousand_emits_get_exactly_the_numbers_1_to_8000(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders")

    def emit_all(thread: int) -> list[int]:
        with Emitter(zone, web=thread % 2) as emitter:
            return [emitter.numbers("orders", EVENT)[0] for _ in range(1_000)]

    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(emit_all, range(8)))
    assert sorted(number for numbers in given for number in numbers) == list(range(1, 8_001))
    for numbers in given:
        assert numbers == sorted(numbers), "a thread's later emit got a lower number"


class Watcher:
    """Polls single events at both processes: if n+1 exists, so does n."""

    def __init__(self, zone: LiveZone, stream: str) -> None:
        self._zone = zone
        self._stream = stream
        self.highest = 0
        self.holes: list[int] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.is_set():
            above = self.highest + 1
            answer = self._get(above + 1, web=above % 2)
            if answer == 404:  # not given yet: then perhaps the one before it
                if self._get(above, web=0) == 200:
                    self.highest = above
                continue
            assert answer == 200
            if self._get(above, web=(above + 1) % 2) != 200:
                self.holes.append(above)
            self.highest = above + 1

    def _get(self, sequence: int, *, web: int) -> int:
        hub = self._zone.hub
        path = f"/v1/streams/{self._stream}/events/{sequence}"
        return hub.call("GET", path, key=self._zone.admin, url=hub.web[web].url).status


class Retrying:
    """A producer with ids that repeats a request until it is answered with 200."""

    def __init__(self, zone: LiveZone, stream: str, number: int) -> None:
        self._zone = zone
        self._stream = stream
        self._number = number
        self.unknown = 0
        self.sent: list[str] = []

    def run(self, enough: threading.Event, count: int) -> None:
        with Emitter(self._zone, web=self._number % 2) as emitter:
            sequence = 0
            while sequence < count or not enough.is_set():
                sequence += 1
                name = f"{self._number}-{sequence}"
                self._emit(emitter, sequence, name)
                self.sent.append(name)

    def _emit(self, emitter: Emitter, sequence: int, name: str) -> None:
        event = {
            **EVENT,
            "name": name,
            "id": {"incarnation": self._number, "sequence": sequence},
        }
        while True:
            status, answer = emitter.post(self._stream, event)
            if status == 200:
                return
            assert status == 503, answer
            assert answer["code"] in ("outcome_unknown", "database_unavailable"), answer
            self.unknown += answer["code"] == "outcome_unknown"


@pytest.mark.req("EMC-03")
async def test_a_rollback_during_an_emit_leaves_no_hole_for_any_reader(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders", segment_events_max=70)
    producers = [Retrying(zone, "orders", number) for number in range(4)]
    watcher, enough = Watcher(zone, "orders"), threading.Event()
    threads = [threading.Thread(target=p.run, args=(enough, 200)) for p in producers]
    threads.append(threading.Thread(target=watcher.run))
    async with (
        session(hub, zone.admin, web=0) as one,
        session(hub, zone.admin, web=1) as two,
    ):
        for reader in (one, two):
            assert (await reader.listen("orders", start="oldest"))["op"] == "listening"
        for thread in threads:
            thread.start()
        await asyncio.to_thread(_break_appends, hub, producers, enough)
        for thread in threads[:-1]:
            await asyncio.to_thread(thread.join)
        sent = [name for producer in producers for name in producer.sent]
        lists = [await reader.events(len(sent)) for reader in (one, two)]
        watcher.stop.set()
        await asyncio.to_thread(threads[-1].join)
        for events, reader in zip(lists, (one, two), strict=True):
            assert [event["sequence"] for event in events] == list(range(1, len(sent) + 1))
            assert [event["prev"] for event in events] == list(range(len(sent)))
            assert await reader.nothing_waits()
    names = [event["event"]["name"] for event in lists[0]]
    assert sorted(names) == sorted(sent), "an event is missing or was stored twice"
    assert watcher.holes == []
    assert watcher.highest > 0


def _break_appends(hub: LiveHub, producers: list[Retrying], enough: threading.Event) -> None:
    """Terminate the appending connections until three callers got `outcome_unknown`."""
    until = time.monotonic() + EMITS_TIMEOUT_S
    try:
        while sum(producer.unknown for producer in producers) < 3:
            assert time.monotonic() < until, "no append was hit"
            hub.sql(TERMINATE)
    finally:
        enough.set()


@pytest.mark.req("EMC-03")
def test_a_refused_emit_uses_no_sequence(zone: LiveZone) -> None:
    zone.create_stream("orders")
    with Emitter(zone) as emitter:
        assert emitter.numbers("orders", numbered(1, 3)) == [1, 2, 3]
        status, problem = emitter.post("orders", [*numbered(4, 5), {**EVENT, "channels": ["no"]}])
        assert (status, problem["code"], problem["position"]["index"]) == (
            400,
            "unknown_channel",
            2,
        )
        assert emitter.numbers("orders", numbered(4, 4)) == [4]


@pytest.mark.req("EMC-04")
def test_no_http_method_changes_a_stored_event(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.emit("orders", {**EVENT, "attributes": {"total": 12}})
    path = "/v1/streams/orders/events/1"
    before = hub.call("GET", path, key=zone.admin)
    assert before.json["attributes"] == {"total": 12}
    for web in hub.web:
        unheard_of = hub.call("UPDATE", path, {}, key=zone.admin, url=web.url)
        assert unheard_of.status == 400, "the HTTP server knows no such method"
        for method in ("PATCH", "PUT", "DELETE", "POST"):
            answer = hub.call(method, path, {"type": "no"}, key=zone.admin, url=web.url)
            answer.refused(405, "method_not_allowed")
            assert "GET" in answer.headers["allow"]
        after = hub.call("GET", path, key=zone.admin, url=web.url)
        assert (after.body, after.headers["etag"]) == (before.body, before.headers["etag"])


def segments(zone: LiveZone, stream: str) -> list[dict[str, Any]]:
    answer = zone.hub.call("GET", f"/v1/streams/{stream}/segments?limit=1000", key=zone.admin)
    items: list[dict[str, Any]] = answer.json["items"]
    for before, after in itertools.pairwise(items):
        assert after["first"] == before["last"] + 1, "the ranges are not contiguous"
    assert [item["state"] for item in items] == ["sealed"] * (len(items) - 1) + ["open"]
    assert len({item["uuid"] for item in items}) == len(items)
    return items


def sizes(items: list[dict[str, Any]]) -> list[int]:
    return [item["last"] - item["first"] + 1 for item in items]


@pytest.mark.req("EMC-13")
@pytest.mark.parametrize("batch", [1, 25, 250])
def test_250_events_in_segments_of_100_are_two_sealed_and_one_open_of_50(
    zone: LiveZone, batch: int
) -> None:
    zone.create_stream("orders", segment_events_max=100)
    with Emitter(zone) as emitter:
        for first in range(1, 251, batch):
            emitter.numbers("orders", numbered(first, first + batch - 1))
    items = segments(zone, "orders")
    assert [(item["first"], item["last"]) for item in items] == [(1, 100), (101, 200), (201, 250)]
    assert [item["sealed_at"] is None for item in items] == [False, False, True]


@pytest.mark.req("EMC-13")
def test_one_batch_may_fill_several_segments_and_its_answer_names_each(zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=100)
    answer = zone.emit("orders", numbered(1, 950)).json
    items = segments(zone, "orders")
    assert sizes(items) == [100] * 9 + [50]
    assert [(r["segment"], r["first"], r["last"]) for r in answer["ranges"]] == [
        (item["uuid"], item["first"], item["last"]) for item in items
    ]


@pytest.mark.req("EMC-13")
def test_a_segment_is_sealed_by_the_event_that_fills_its_bytes(zone: LiveZone) -> None:
    zone.create_stream("one")
    zone.emit("one", EVENT)
    [size] = [item["bytes"] for item in segments(zone, "one")]
    zone.create_stream("exactly", segment_bytes_max=3 * size)
    zone.create_stream("beyond", segment_bytes_max=3 * size + 1)
    for stream in ("exactly", "beyond"):
        zone.emit(stream, [EVENT] * 7)
    assert sizes(segments(zone, "exactly")) == [3, 3, 1]
    assert sizes(segments(zone, "beyond")) == [4, 3]
    assert [item["bytes"] for item in segments(zone, "beyond")] == [4 * size, 3 * size]


@pytest.mark.req("EMC-14")
def test_the_current_segment_has_a_uuid_and_changes_exactly_at_the_roll(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders", segment_events_max=100)

    def current(web: int) -> tuple[str, int]:
        path = "/v1/streams/orders/segments/current"
        found = hub.call("GET", path, key=zone.admin, url=hub.web[web].url).json
        return found["uuid"], found["first"]

    first = current(0)
    assert first[1] == 1
    with Emitter(zone) as emitter:
        for _ in range(99):
            emitter.numbers("orders", EVENT)
        assert current(0) == current(1) == first
        emitter.numbers("orders", EVENT)
        second = current(1)
        assert second == current(0)
        assert second[0] != first[0]
        assert second[1] == 101
        emitter.numbers("orders", numbered(101, 199))
        assert current(0) == second
