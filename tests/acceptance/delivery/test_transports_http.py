"""The transports over HTTP: long poll, stored bytes, snapshots (EMC-31, 32, 34)."""

import asyncio
import hashlib
import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import aclosing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from eventhub.event import event_pb2
from tests.acceptance.matched_streams import wait_equal
from tests.acceptance.transports import FRAMES, ListenerSpec, events_of, server_frames
from tests.acceptance.unannounced import nothing_announced
from tests.acceptance.wire import EVENT, PROTOBUF, numbered, session, until
from tests.live import Answer, LiveHub, LiveZone

HEAR_TIMEOUT_S = 30.0
SNAPSHOT = ("gap", "listening", "state", "state", "state_end", "event", "event")


def listen(zone: LiveZone, query: str, *, web: int = 0, **headers: str) -> Answer:
    path = f"/v1/streams/orders/events?{query}"
    return zone.hub.call("GET", path, key=zone.admin, url=zone.hub.web[web].url, headers=headers)


def retain_four(zone: LiveZone, **policy: Any) -> None:
    """Create a stream of which retention leaves the last segments, with four events or more."""
    zone.create_stream("orders", segment_events_max=3, retain_events=4, **policy)


def wait_first(zone: LiveZone, sequence: int) -> None:
    """Wait until retention has removed the events before a sequence."""

    def first() -> int:
        return int(zone.hub.call("GET", "/v1/streams/orders", key=zone.admin).json["first"])

    wait_equal(first, sequence)


def test_a_page_has_what_was_stored_before_its_request(zone: LiveZone) -> None:
    """Regression: a process that had not yet read of it answered without it."""
    path = "/v1/streams/system/events"
    system = zone.hub.call("GET", "/v1/streams/system", key=zone.admin).json
    start = f"{system['segment']['uuid']}:{system['last']}"
    with ThreadPoolExecutor() as pool:
        with nothing_announced(zone.hub):
            zone.create_stream("orders")
            pages = [
                pool.submit(
                    zone.hub.call, "GET", f"{path}?from={start}", key=zone.admin, url=web.url
                )
                for web in zone.hub.web
            ]
            wait(pages, timeout=1)
        found = [page.result().json for page in pages]
    for page in found:
        assert "stream.created" in [one["event"]["type"] for one in page["events"]]
        assert page["cursor"]["sequence"] >= page["head"]


@pytest.mark.req("EMC-34")
async def test_a_long_poll_returns_at_the_event_or_empty_with_the_same_cursor(
    zone: LiveZone,
) -> None:
    """Both wait at the second web process; the first one takes the emit."""
    zone.create_stream("orders")
    zone.create_stream("quiet")
    [run] = zone.emit("orders", numbered(1, 3)).json["ranges"]
    zone.emit("quiet", EVENT)
    ended_s: dict[str, float] = {}

    async def poll(http: aiohttp.ClientSession, stream: str, start: str) -> dict[str, Any]:
        url = f"{zone.hub.web[1].url}/v1/streams/{stream}/events"
        async with http.get(url, params={"from": start, "timeout": "20"}) as response:
            assert response.status == 200
            page: dict[str, Any] = await response.json()
            ended_s[stream] = time.monotonic()
            return page

    head = zone.hub.call("GET", "/v1/streams/quiet/events?from=now", key=zone.admin).json["cursor"]
    headers = {"Authorization": f"Bearer {zone.admin}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        others, began_s = _readers(zone.hub), time.monotonic()
        quiet = asyncio.create_task(poll(http, "quiet", f"{head['segment']}:{head['sequence']}"))
        orders = asyncio.create_task(poll(http, "orders", f"{run['segment']}:3"))
        await until(lambda: _readers(zone.hub) >= others + 2)
        emitted_s = time.monotonic()
        await asyncio.to_thread(zone.emit, "orders", numbered(4, 4))
        found = await orders
        assert [(item["prev"], item["sequence"]) for item in found["events"]] == [(3, 4)]
        assert found["events"][0]["liveness"] == "live"
        assert found["cursor"] == {"segment": run["segment"], "sequence": 4}
        empty = await quiet
    assert (empty["events"], empty["cursor"]) == ([], head)
    assert 0 < ended_s["orders"] - emitted_s < 1
    assert 20 <= ended_s["quiet"] - began_s < 22


def _readers(hub: LiveHub) -> float:
    """Return the number of readers, of all tests."""
    text = hub.call("GET", "/metrics").body.decode()
    found = [line.split()[-1] for line in text.splitlines() if line.startswith("eventhub_sockets")]
    return sum(float(value) for value in found)


@pytest.mark.req("EMC-31")
async def test_protobuf_carries_the_stored_bytes(hub: LiveHub, zone: LiveZone) -> None:
    """On websockets, live from memory and later from the database, and in pages and raw segments;
    for listeners with and without filters.
    """
    zone.create_stream("orders", segment_events_max=10)
    [registration] = zone.register({"streams": ["orders"], "domain": "shop"})
    interests: dict[str, dict[str, Any]] = {
        "all": {},
        "filtered": {"language": "predicate", "filter": "(>= n 0)"},
        "registered": {"registrations": [registration["id"]]},
    }
    found: dict[str, dict[int, str]] = {}
    async with session(hub, zone.admin, web=1, subprotocol=PROTOBUF) as live:
        for name, interest in interests.items():
            await live.listen("orders", name=name, **interest)
        events = [{**EVENT, "attributes": {"n": n}, "body": ["ü" * n]} for n in range(10)]
        assert zone.emit("orders", events).status == 200
        collect(found, [message["frame"] for message in await live.events(30)])
    for name, interest in interests.items():
        async with session(hub, zone.admin, subprotocol=PROTOBUF) as late:
            await late.listen("orders", name=f"late-{name}", start="oldest", **interest)
            collect(found, [message["frame"] for message in await late.events(10)])
    segments = hub.call("GET", "/v1/streams/orders/segments", key=zone.admin).json["items"]
    raw = f"/v1/streams/orders/segments/{segments[0]['uuid']}/raw"
    for path in ("/v1/streams/orders/events?from=oldest", raw):
        answer = hub.call("GET", path, key=zone.admin, headers={"Accept": FRAMES})
        assert (answer.status, answer.headers["content-type"]) == (200, FRAMES)
        frames = [frame.event for frame in server_frames(answer.body) if frame.HasField("event")]
        found[path] = {frame.sequence: sha256(frame.event) for frame in frames}
    rows = hub.sql(
        "SELECT e.sequence, encode(sha256(e.payload), 'hex') FROM events e"
        " JOIN segments g ON g.id = e.segment_id JOIN streams s ON s.id = g.stream_id"
        " JOIN zones z ON z.id = s.zone_id WHERE z.name = %s AND s.name = 'orders'",
        zone.name,
    )
    stored: dict[int, str] = dict(rows)
    assert len(stored) == 10
    assert len(found) == 8
    assert all(sent == stored for sent in found.values()), found


def collect(found: dict[str, dict[int, str]], frames: list[event_pb2.EventFrame]) -> None:
    """Add the hashes of the frames' bodies by listener and sequence."""
    for frame in frames:
        found.setdefault(frame.listener, {})[frame.sequence] = sha256(frame.event)


def sha256(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


@pytest.mark.req("EMC-32")
def test_a_segment_of_50_mb_is_sent_in_constant_memory(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=64)
    body = "x" * 800_000
    for _ in range(8):
        assert zone.emit("orders", [{**EVENT, "body": body} for _ in range(8)]).status == 200
    [segment, _] = hub.call("GET", "/v1/streams/orders/segments", key=zone.admin).json["items"]
    assert segment["bytes"] > 50_000_000
    path = f"/v1/streams/orders/segments/{segment['uuid']}/raw"
    web = hub.web[1]
    small = f"/v1/streams/orders/segments/{segment['uuid']}"
    hub.call("GET", small, key=zone.admin, url=web.url)
    before, peak = _rss_kib(web.pid), 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.01):
            peak = max(peak, _rss_kib(web.pid))

    watching = threading.Thread(target=watch)
    watching.start()
    answer = hub.call("GET", path, key=zone.admin, url=web.url)
    done.set()
    watching.join()
    frames = [frame.event for frame in server_frames(answer.body)]
    assert [frame.sequence for frame in frames] == list(range(1, 65))
    assert peak > 0
    assert peak - before < 10 * 1024, f"{peak - before} KiB more"


def _rss_kib(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") // 1024


def keyed(zone: LiveZone) -> dict[str, Any]:
    """Emit to a keyed stream until its first segments are gone: a and b are there, c has ended.
    Return its oldest cursor.
    """
    retain_four(zone, keyed=True)
    events = [{**EVENT, "key": key, "attributes": {"n": n}} for n, key in enumerate("abcabcab", 1)]
    ranges = zone.emit("orders", events).json["ranges"]
    zone.emit("orders", {**EVENT, "key": "c", "tombstone": True})
    zone.emit("orders", {**EVENT, "attributes": {"n": 10}})
    wait_first(zone, 7)
    return {"segment": ranges[0]["segment"], "sequence": 1}


def check_snapshot(messages: list[dict[str, Any]]) -> None:
    """Check the gap, then the total state at n, then n + 1 and on in order (SUN-29)."""
    received = [message["op"] for message in messages]
    assert tuple(received) == SNAPSHOT, received
    gap, listening, *states, end, first, second = messages
    assert (gap["code"], gap["then"]) == ("gap", "state")
    state = {one["key"]: (one["sequence"], one["event"]["attributes"]["n"]) for one in states}
    assert state == {"a": (7, 7), "b": (8, 8)}
    n = end["cursor"]["sequence"]
    assert (n, listening["cursor"]) == (10, end["cursor"])
    assert [(m["prev"], m["sequence"]) for m in (first, second)] == [(n, n + 1), (n + 1, n + 2)]


@pytest.mark.req("SUN-29")
async def test_a_socket_that_missed_something_gets_the_total_state(
    hub: LiveHub, zone: LiveZone
) -> None:
    cursor = keyed(zone)
    async with session(hub, zone.admin, web=1) as reader:
        await reader.say("listen", listener="a", stream="orders", **{"from": cursor})
        messages = [await reader.hear() for _ in range(5)]
        zone.emit("orders", [{**EVENT, "key": "c"}, EVENT])
        messages += await reader.events(2)
    assert {message["listener"] for message in messages} == {"a"}
    check_snapshot(messages)


@pytest.mark.req("SUN-29")
async def test_server_sent_events_that_missed_something_give_the_total_state(
    hub: LiveHub, zone: LiveZone
) -> None:
    """None of the snapshot has an id: an EventSource that disconnects in it receives it again."""
    cursor = keyed(zone)
    spec = ListenerSpec(hub, zone.admin, "orders", f"{cursor['segment']}:{cursor['sequence']}")
    messages: list[dict[str, Any]] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(events_of(spec)) as events:  # type: ignore[type-var]
        async for message in events:
            messages.append(message)
            if len(messages) == 5:
                await asyncio.to_thread(zone.emit, "orders", [{**EVENT, "key": "c"}, EVENT])
            if len(messages) == 7:
                break
    ids = [message.pop("id") for message in messages]
    assert (ids[0], ids[2], ids[3]) == (None, None, None)
    check_snapshot(messages)


@pytest.mark.parametrize("state", ["always", "never"])
async def test_a_snapshot_is_sent_when_requested(hub: LiveHub, zone: LiveZone, state: str) -> None:
    keyed(zone)
    async with session(hub, zone.admin) as reader:
        await reader.say("listen", listener="a", stream="orders", state=state, **{"from": "oldest"})
        received = [(await reader.hear())["op"] for _ in range(4)]
    if state == "always":
        assert received == ["listening", "state", "state", "state_end"]
    else:
        assert received == ["listening", "event", "event", "event"]


async def test_server_sent_events_continue_after_a_reported_gap(
    hub: LiveHub, zone: LiveZone
) -> None:
    retain_four(zone)
    ranges = zone.emit("orders", numbered(1, 10)).json["ranges"]
    wait_first(zone, 7)
    spec = ListenerSpec(hub, zone.admin, "orders", f"{ranges[0]['segment']}:1")
    messages: list[dict[str, Any]] = []
    async with asyncio.timeout(HEAR_TIMEOUT_S), aclosing(events_of(spec)) as events:  # type: ignore[type-var]
        async for message in events:
            messages.append(message)
            if len(messages) == 4:
                break
    gap, listening, *rest = messages
    assert (gap["op"], gap["then"], gap["missed"]) == ("gap", "events", {"first": 2, "last": 6})
    assert gap["id"] == f"{ranges[2]['segment']}:6" == listening["id"]
    assert [(one["prev"], one["sequence"]) for one in rest] == [(6, 7), (7, 8)]


def test_curl_reads_pages_and_resumes_server_sent_events(zone: LiveZone) -> None:
    """The script sends the id of the last event as Last-Event-ID."""
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 5))
    url = f"{zone.hub.url}/v1/streams/orders/events"
    page = json.loads(curl(f"{url}?from=oldest&limit=2", zone.admin))
    assert [item["sequence"] for item in page["events"]] == [1, 2]
    text = curl(url, zone.admin, "-H", "Accept: application/x-ndjson", "-G", "-d", "from=oldest")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line.get("sequence") for line in lines] == [1, 2, 3, 4, 5, None]
    assert lines[-1]["cursor"]["sequence"] == 5

    def cut_off(*options: str) -> tuple[list[int], str]:
        """Return the events until the time-out of curl, and the last id."""
        sse = ("-N", "--max-time", "2", "-H", "Accept: text/event-stream", *options)
        text = curl(f"{url}?from=oldest", zone.admin, *sse, code=28)
        numbers = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        ids = [line[4:] for line in text.splitlines() if line.startswith("id: ")]
        return [one["sequence"] for one in numbers if one["op"] == "event"], ids[-1]

    numbers, last = cut_off()
    assert numbers == [1, 2, 3, 4, 5]
    zone.emit("orders", numbered(6, 7))
    assert cut_off("-H", f"Last-Event-ID: {last}")[0] == [6, 7]


def test_a_page_comes_as_a_batch_of_cloudevents(zone: LiveZone) -> None:
    """The cursor is in a header, and the id of an event that has none of its own."""
    zone.create_stream("orders")
    [run] = zone.emit("orders", [{**EVENT, "id": "own", "body": {"n": 1}}, EVENT]).json["ranges"]
    media = "application/cloudevents-batch+json"
    answer = listen(zone, "from=oldest", Accept=media)
    assert (answer.status, answer.headers["content-type"]) == (200, media)
    first, second = answer.json
    assert (first["id"], first["type"], first["data"]) == ("own", "order.placed", {"n": 1})
    assert second["id"] == f"{run['segment']}:2" == answer.headers["eventhub-cursor"]


def curl(url: str, key: str, *options: str, code: int = 0) -> str:
    command = ["curl", "-s", "-H", f"Authorization: Bearer {key}", *options, url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout
