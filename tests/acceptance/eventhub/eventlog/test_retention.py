"""Retention through the public API: policies, the quota, and data that outlives a process (EMC-23
to 27, 35).
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.wire import EVENT, numbered, session
from tests.busy import stretched
from tests.live import Answer, LiveHub, LiveZone, live_hub

PATIENCE_S = 60.0
QUOTA = 32 * 1024 * 1024


def wait_for(holds: Callable[[], bool], what: str) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s, f"timed out waiting for {what}"
        time.sleep(0.05)


def get(zone: LiveZone, path: str, **more: Any) -> Any:
    answer = zone.hub.call("GET", path, key=zone.admin, **more)
    assert answer.status == 200, answer
    return answer.json


def first_of(zone: LiveZone, stream: str) -> int:
    return int(get(zone, f"/v1/streams/{stream}")["first"])


def read_all(zone: LiveZone, stream: str, **more: Any) -> list[dict[str, Any]]:
    """Read every readable event, page by page."""
    found: list[dict[str, Any]] = []
    start = "oldest"
    while True:
        page = get(zone, f"/v1/streams/{stream}/events?from={start}&limit=1000", **more)
        found += page["events"]
        if page["cursor"]["sequence"] >= page["head"]:
            return found
        start = f"{page['cursor']['segment']}:{page['cursor']['sequence']}"


def announced(zone: LiveZone, kind: str) -> list[dict[str, Any]]:
    """Return the attributes of the events of a type in `system`."""
    events = [item["event"] for item in read_all(zone, "system")]
    return [event["attributes"] for event in events if event["type"] == kind]


def move_clock(zone: LiveZone, stream: str, minutes: int) -> None:
    """Move the stream's segments into the past by so many minutes."""
    zone.hub.sql(
        "UPDATE segments SET opened_at = opened_at - make_interval(mins => %s),"
        " sealed_at = sealed_at - make_interval(mins => %s) WHERE stream_id = (SELECT s.id"
        " FROM streams s JOIN zones z ON z.id = s.zone_id WHERE z.name = %s AND s.name = %s)",
        *(minutes, minutes, zone.name, stream),
    )


@pytest.mark.req("EMC-23")
def test_ten_segments_of_a_hundred_are_retained_and_an_old_cursor_gets_a_gap(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders", segment_events_max=100, retain_events=1_000)
    [begin, *_] = zone.emit("orders", numbered(1, 1_000)).json["ranges"]
    zone.emit("orders", numbered(1_001, 2_000))
    wait_for(lambda: first_of(zone, "orders") == 1_001, "the oldest ten segments to go")
    old = f"/v1/streams/orders/events?from={begin['segment']}:5"
    gap = zone.hub.call("GET", old, key=zone.admin).refused(410, "gap")
    assert gap["first_available"]["sequence"] == 1_001
    assert gap["missed"] == {"first": 6, "last": 1_000}
    kept = read_all(zone, "orders")
    assert [item["sequence"] for item in kept] == list(range(1_001, 2_001))
    [trimmed] = [one for one in announced(zone, "stream.trimmed") if one["stream"] == "orders"][-1:]
    assert (trimmed["first"], trimmed["reason"], trimmed["zone"]) == (1_001, "count", zone.name)
    all_trimmed = [one for one in announced(zone, "stream.trimmed") if one["stream"] == "orders"]
    assert sum(one["events"] for one in all_trimmed) == 1_000


@pytest.fixture(scope="module")
def small_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """Run a hub with a quota."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVENTHUB_QUOTA_BYTES", str(QUOTA))
        with live_hub(tmp_path_factory.mktemp("small")) as running:
            yield running


@pytest.mark.req("EMC-24")
def test_while_postgresql_has_no_space_emits_are_refused_at_once_and_reads_go_on(
    small_hub: LiveHub,
) -> None:
    """For two seconds every row of an event is refused, as by a full disk; then all goes on without
    manual action, and the warning comes once, though both processes noticed it.
    """
    zone = small_hub.new_zone()
    zone.create_stream("orders")
    assert zone.emit("orders", numbered(1, 10)).status == 200
    refused = 0
    full_until_s = refuse_rows_for(small_hub, 2.0)
    while (answer := timed_emit(zone, web=refused % 2)).status != 200:
        answer.refused(507, "storage_full")
        assert int(answer.headers["retry-after"]) <= limits.STORAGE_FULL_RETRY_S
        refused += 1
        found = read_all(zone, "orders", url=small_hub.web[refused % 2].url)
        assert len(found) == 10
    assert refused > 1
    assert 0 <= time.time() - full_until_s < stretched(1.0)
    wait_for(lambda: bool(announced(zone, "storage.disk_full")), "the warning")
    [warning] = announced(zone, "storage.disk_full")
    assert (warning["level"], 1 < warning["duration_s"] <= 2.5) == ("warning", True), warning
    numbers = [item["event"]["attributes"]["n"] for item in read_all(zone, "orders")]
    assert numbers == list(range(1, 12))


def refuse_rows_for(hub: LiveHub, seconds: float) -> float:
    """Have PostgreSQL refuse new events for lack of space (53100) for a while; return its end."""
    [(until,)] = hub.sql("SELECT clock_timestamp() + make_interval(secs => %s)", seconds)
    hub.sql(
        "CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF clock_timestamp() < '{until.isoformat()}' THEN"
        " RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END IF;"
        " RETURN NEW; END $$"
    )
    hub.sql(
        "CREATE TRIGGER refuse_row BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION"
        " refuse_row()"
    )
    return float(until.timestamp())


def timed_emit(zone: LiveZone, *, web: int) -> Answer:
    """Emit one event, which must be answered within a second."""
    began_s = time.monotonic()
    answer = zone.emit("orders", numbered(11, 11), url=zone.hub.web[web].url)
    assert time.monotonic() - began_s < stretched(1.0)
    return answer


@pytest.mark.req("EMC-24")
@pytest.mark.timeout(240)
def test_at_the_quota_the_oldest_events_are_dropped_and_a_warning_is_announced(
    small_hub: LiveHub,
) -> None:
    """Twice the quota is emitted, a mebibyte at a time. Few emits are refused, and not for long."""
    hub, zone = small_hub, small_hub.new_zone()
    zone.create_stream("orders", segment_events_max=100)
    [before] = zone.emit("orders", EVENT).json["ranges"]
    highest, refused_s = 0, []
    for number in range(64):
        refused_s.append(emit_mebibyte(zone, number))
        highest = max(highest, _used(hub))
        if refused_s[-1]:
            assert len(announced(zone, "storage.quota_reached")) == 1
    wait_for(lambda: first_of(zone, "orders") > 1, "the oldest segment to go")
    assert highest <= QUOTA
    assert refused_s.count(0) >= 0.9 * 64, refused_s
    gone = f"/v1/streams/orders/events?from={before['segment']}:0"
    assert hub.call("GET", gone, key=zone.admin).status == 410
    [warning] = announced(zone, "storage.quota_reached")
    assert (warning["level"], warning["quota_bytes"]) == ("warning", QUOTA)
    assert {one["reason"] for one in announced(zone, "stream.trimmed")} == {"quota"}
    wait_for(lambda: not _pressed(hub), "the last segment to go that has to")
    left = read_all(zone, "orders")
    first = left[0]["sequence"]
    assert first % 100 == 1  # whole segments, the oldest ones
    assert [item["sequence"] for item in left] == list(range(first, 2 + 64 * 50))
    assert left[-1]["event"]["attributes"]["n"] == 63
    assert zone.emit("orders", EVENT).status == 200


def emit_mebibyte(zone: LiveZone, number: int) -> float:
    """Emit fifty events until they are accepted; return how long they were refused, in seconds."""
    batch = [{**EVENT, "attributes": {"n": number}, "body": "x" * 20_000}] * 50
    began_s, refused_s = time.monotonic(), 0.0
    while (answer := zone.emit("orders", batch)).status != 200:
        answer.refused(507, "storage_full")
        assert int(answer.headers["retry-after"]) <= limits.STORAGE_FULL_RETRY_S
        refused_s = time.monotonic() - began_s
        assert refused_s < 5
        time.sleep(0.05)
    return refused_s


def _used(hub: LiveHub) -> int:
    return int(hub.operate("GET", "/v1/storage").json["used_bytes"])


def _pressed(hub: LiveHub) -> bool:
    now = hub.operate("GET", "/v1/storage").json
    return bool(now["used_bytes"] > now["quota_bytes"] * limits.QUOTA_SHARE_ACT)


@pytest.mark.req("EMC-25")
def test_an_audit_stream_with_only_three_events_rolls_by_time(zone: LiveZone) -> None:
    zone.create_stream("audit", segment_age_s_max=3_600)
    [run] = zone.emit("audit", numbered(1, 3)).json["ranges"]
    move_clock(zone, "audit", 59)
    assert current(zone, "audit") == run["segment"]
    move_clock(zone, "audit", 2)
    wait_for(lambda: current(zone, "audit") != run["segment"], "a new segment")
    [sealed, opened] = get(zone, "/v1/streams/audit/segments")["items"]
    assert (sealed["uuid"], sealed["first"], sealed["last"]) == (run["segment"], 1, 3)
    assert (opened["first"], opened["state"]) == (4, "open")
    assert [item["sequence"] for item in read_all(zone, "audit")] == [1, 2, 3]
    [after] = zone.emit("audit", EVENT).json["ranges"]
    assert (after["segment"], after["first"]) == (opened["uuid"], 4)


def current(zone: LiveZone, stream: str) -> str:
    return str(get(zone, f"/v1/streams/{stream}/segments/current")["uuid"])


@pytest.mark.req("EMC-26")
def test_each_stream_has_its_own_policy_and_the_report_lists_both(zone: LiveZone) -> None:
    zone.create_stream("recent", segment_events_max=10, retain_events=20)
    zone.create_stream("audit", segment_events_max=10, retain_age_s=24 * 3_600)
    for stream in ("recent", "audit"):
        zone.emit(stream, numbered(1, 100))
    wait_for(lambda: first_of(zone, "recent") == 81, "the short-term stream to be trimmed")
    assert first_of(zone, "audit") == 1
    report = {one["name"]: one for one in get(zone, "/v1/storage")["streams"]}
    assert report["recent"]["segments"] == {"live": 3, "archived": 0, "dropped": 8}
    assert report["audit"]["segments"] == {"live": 11, "archived": 0, "dropped": 0}
    assert (report["recent"]["first"], report["audit"]["first"]) == (81, 1)
    move_clock(zone, "audit", 24 * 60 - 1)
    assert [item["sequence"] for item in read_all(zone, "audit")] == list(range(1, 101))
    move_clock(zone, "audit", 2)
    wait_for(lambda: first_of(zone, "audit") == 101, "the audit stream's period to end")
    whys = {one["stream"]: one["reason"] for one in announced(zone, "stream.trimmed")}
    assert (whys.get("recent"), whys.get("audit")) == ("count", "age")


@pytest.mark.req("EMC-27")
def test_events_stored_by_a_killed_process_can_be_read(zone: LiveZone) -> None:
    zone.create_stream("orders")
    web = zone.hub.web[1]
    given = [zone.emit("orders", one, url=web.url).json for one in numbered(1, 50)]
    web.kill()
    try:
        assert [item["sequence"] for item in read_all(zone, "orders")] == list(range(1, 51))
    finally:
        web.start()
    found = read_all(zone, "orders", url=web.url)
    assert [item["event"]["attributes"]["n"] for item in found] == list(range(1, 51))
    assert {item["segment"] for item in found} == {given[0]["ranges"][0]["segment"]}


@pytest.mark.req("EMC-35")
async def test_a_transient_stream_outlives_web_processes_with_its_last_ten_events(
    hub: LiveHub, zone: LiveZone
) -> None:
    mark = f"only {zone.name} has this"
    zone.create_stream("counters", durability="transient", retain_events=10)
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("counters")
        for first in range(1, 25, 5):  # the reader must not lag by more than ten
            events = numbered(first, first + 4, body=mark)
            [run] = zone.emit("counters", events).json["ranges"]
            received = [one["event"]["attributes"]["n"] for one in await reader.events(5)]
            assert received == list(range(first, first + 5))
    for process in hub.web:
        process.stop()
    for process in hub.web:
        process.start()
    for process in hub.web:
        kept = read_all(zone, "counters", url=process.url)
        assert [(one["segment"], one["sequence"]) for one in kept] == (
            [(run["segment"], n) for n in range(16, 26)]
        )
    state = get(zone, "/v1/streams/counters")
    assert (state["first"], state["last"], state["segment"]["uuid"]) == (16, 25, run["segment"])
    tables = "(SELECT stream_id FROM segments UNION ALL SELECT stream_id FROM heads)"
    rows = hub.sql(
        f"SELECT s.id FROM {tables} t JOIN streams s ON s.id = t.stream_id JOIN zones z ON"
        " z.id = s.zone_id WHERE z.name = %s AND s.name = 'counters'",
        zone.name,
    )
    rows += hub.sql("SELECT 1 FROM events WHERE position(%s::bytea in payload) > 0", mark.encode())
    assert rows == []
