"""Retention through the public API: policies, the quota, and data that outlives a process (EMC-23
to 28).
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.wire import EVENT, numbered
from tests.live import LiveHub, LiveZone, live_hub

PATIENCE_S = 60.0
MIB = 1024 * 1024


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


@pytest.mark.req("EMC-24")
@pytest.mark.timeout(240)
def test_at_the_quota_the_oldest_events_are_dropped_and_a_warning_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the quota is emitted; every event is accepted in the end, and the newest can be
    read.
    """
    quota = 32 * MIB
    monkeypatch.setenv("EVENTHUB_QUOTA_BYTES", str(quota))
    with live_hub(tmp_path) as hub:
        zone = hub.new_zone()
        zone.create_stream("orders", segment_events_max=100)
        [before] = zone.emit("orders", EVENT).json["ranges"]
        highest = 0
        for number in range(64):
            _emit_patiently(zone, number)
            highest = max(highest, _used(hub))
        wait_for(lambda: first_of(zone, "orders") > 1, "the oldest segment to go")
        assert highest <= quota
        gone = f"/v1/streams/orders/events?from={before['segment']}:0"
        assert hub.call("GET", gone, key=zone.admin).status == 410
        [warning] = announced(zone, "storage.quota_reached")
        assert (warning["level"], warning["quota_bytes"]) == ("warning", quota)
        assert {one["reason"] for one in announced(zone, "stream.trimmed")} == {"quota"}
        wait_for(lambda: not _pressed(hub), "the last segment to go that has to")
        left = read_all(zone, "orders")
        assert left[-1]["event"]["attributes"]["n"] == 63
        zone.emit("orders", EVENT)


def _emit_patiently(zone: LiveZone, number: int) -> None:
    """Emit a mebibyte in fifty events, and retry after a 507."""
    body = "x" * 20_000
    batch = [{**EVENT, "attributes": {"n": number}, "body": body}] * 50
    wait_for(lambda: _emitted(zone, batch), "an emit to be taken")


def _emitted(zone: LiveZone, batch: list[dict[str, Any]]) -> bool:
    answer = zone.emit("orders", batch)
    if answer.status == 507:
        assert answer.headers["retry-after"]
        answer.refused(507, "storage_full")
    else:
        assert answer.status == 200, answer
    return answer.status == 200


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


@pytest.mark.req("EMC-28")
def test_a_half_full_segment_keeps_its_uuid_across_an_orderly_restart(zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=100)
    [run] = zone.emit("orders", numbered(1, 50)).json["ranges"]
    for process in zone.hub.web:
        process.stop()  # SIGTERM
    for process in zone.hub.web:
        process.start()
    assert current(zone, "orders") == run["segment"]
    found = read_all(zone, "orders")
    assert [(item["segment"], item["sequence"]) for item in found] == (
        [(run["segment"], sequence) for sequence in range(1, 51)]
    )
    [full, _] = zone.emit("orders", numbered(51, 101)).json["ranges"]
    assert (full["segment"], full["last"]) == (run["segment"], 100)
    [sealed, _] = get(zone, "/v1/streams/orders/segments")["items"]
    assert (sealed["uuid"], sealed["last"], sealed["state"]) == (run["segment"], 100, "sealed")
