"""Starts of the hub (EMC-17, EMC-18), and the report of what policies did (EMC-26)."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveHub, LiveZone, live_hub
from tests.live_processes import MANAGE

APP = {"domain": "d", "type": "app.state"}


@pytest.fixture(scope="module")
def own_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """A start concerns all zones, so these tests have a hub of their own."""
    with live_hub(tmp_path_factory.mktemp("boot")) as running:
        yield running


@pytest.fixture
def shop(own_hub: LiveHub) -> LiveZone:
    return own_hub.new_zone()


def ask(zone: LiveZone, path: str) -> Any:
    answer = zone.hub.call("GET", f"/v1/{path}", key=zone.admin)
    assert answer.status == 200, answer
    return answer.json


def events_from(zone: LiveZone, stream: str, start: str) -> list[dict[str, Any]]:
    """All events after a cursor, or another start, as a long poll gives them."""
    found: list[dict[str, Any]] = []
    while True:
        page = ask(zone, f"streams/{stream}/events?from={start}&limit=100")
        found += page["events"]
        start = f"{page['cursor']['segment']}:{page['cursor']['sequence']}"
        if page["cursor"]["sequence"] >= page["head"]:
            return found


def told_again(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["event"] for one in events
            if one["event"].get("environment", {}).get("reason") == "restart"]  # fmt: skip


@pytest.mark.req("EMC-17")
def test_a_listen_from_the_start_begins_with_its_event(shop: LiveZone) -> None:
    shop.create_stream("orders")
    shop.emit("orders", {"domain": "d", "type": "before"})
    shop.hub.manage("boot")
    shop.emit("orders", {"domain": "d", "type": "after"})
    start = ask(shop, "boot")
    assert start["stream"] == "system"
    for begin in ("boot", f"{start['segment']}:{start['sequence']}"):
        first = events_from(shop, "system", begin)[0]
        assert (first["event"]["domain"], first["event"]["type"]) == ("eventhub", "hub.started")
        assert first["sequence"] == start["sequence"] + 1
        assert "zone" not in first["event"]["attributes"]
    assert [one["event"]["type"] for one in events_from(shop, "orders", "boot")] == ["after"]
    assert ask(shop, "streams/orders")["boot"]["sequence"] == 1


@pytest.mark.req("EMC-17")
def test_a_start_is_shown_to_the_managers_of_all_zones(shop: LiveZone) -> None:
    other = shop.hub.new_zone()
    shop.hub.manage("boot")
    sequence = ask(shop, "boot")["sequence"] + 1
    for zone in (shop, other):
        assert ask(zone, f"streams/system/events/{sequence}")["type"] == "hub.started"
    listener = shop.key("listen:*")
    refusal = shop.hub.call("GET", f"/v1/streams/system/events/{sequence}", key=listener)
    refusal.refused(403, "forbidden")


@pytest.mark.req("EMC-18")
def test_the_state_of_three_apps_follows_the_start_marker(shop: LiveZone) -> None:
    shop.create_stream("apps", keyed=True, restate=True)
    for key in ("a", "b", "c", "gone"):
        for number in range(2):
            event = {**APP, "key": key, "attributes": {"n": number}, "id": f"{key}{number}"}
            shop.emit("apps", {**event, "environment": {"rack": "7"}})
    shop.emit("apps", {**APP, "key": "gone", "tombstone": True})
    shop.emit("apps", {"domain": "d", "type": "keyless"})
    shop.hub.manage("boot")
    marker, *state = [one["event"] for one in events_from(shop, "apps", "boot")]
    assert marker["type"] == "hub.started"
    assert {one["key"] for one in state} == {"a", "b", "c"}
    assert len(state) == 3
    for one in state:
        assert one["environment"] == {"rack": "7", "reason": "restart"}
        assert (one["attributes"], one["source"]) == ({"n": 1}, "tester")
        assert "id" not in one  # it is another event ...
        segment, sequence = one["cause"].split(":")  # ... caused by the first
        was = ask(shop, f"streams/apps/events/{sequence}")
        assert (was["segment"], was["key"], was["attributes"]) == (segment, one["key"], {"n": 1})
    shown = ask(shop, "streams/apps/state")["items"]
    assert {item["key"]: item["event"]["environment"]["reason"] for item in shown} == dict.fromkeys(
        ["a", "b", "c"], "restart"
    )


@pytest.mark.req("EMC-18")
def test_a_start_that_is_killed_in_the_middle_is_made_good_by_the_next(shop: LiveZone) -> None:
    """What is told again is never older than what a reader had seen of the key."""
    shop.create_stream("apps", keyed=True, restate=True, segment_events_max=700)
    keys = [f"k{number:04}" for number in range(3000)]
    for at in range(0, len(keys), 1000):
        shop.emit("apps", [{**APP, "key": key} for key in keys[at : at + 1000]])
    command = [sys.executable, MANAGE, "boot"]
    with subprocess.Popen(command, env=shop.hub.env, cwd=Path(MANAGE).parent) as booting:
        while ask(shop, "streams/apps")["last"] <= len(keys) + 1:
            assert booting.poll() is None, "it ended before it could be killed"
        booting.kill()
    cut = ask(shop, "streams/apps")["last"]
    assert len(keys) + 1 < cut < 2 * len(keys) + 1
    shop.emit("apps", {**APP, "key": keys[-1], "attributes": {"new": True}})
    shop.hub.manage("boot")
    marker, *state = [one["event"] for one in events_from(shop, "apps", "boot")]
    assert marker["type"] == "hub.started"
    assert sorted(one["key"] for one in state) == keys
    assert len(told_again([{"event": one} for one in state])) == len(keys)
    [last] = [one for one in state if one["key"] == keys[-1]]
    assert last["attributes"] == {"new": True}


@pytest.mark.req("EMC-18")
def test_a_stream_that_does_not_restate_is_told_nothing(shop: LiveZone) -> None:
    shop.create_stream("apps", keyed=True)
    shop.emit("apps", {**APP, "key": "a"})
    shop.hub.manage("boot")
    assert events_from(shop, "apps", "boot") == []


def test_after_a_restore_every_stream_has_a_new_segment(shop: LiveZone) -> None:
    shop.create_stream("orders")
    shop.emit("orders", [{"domain": "d", "type": "t"}] * 3)
    before = ask(shop, "streams/orders")["segment"]["uuid"]
    assert "new segments" in shop.hub.manage("restored")
    after = ask(shop, "streams/orders")["segment"]
    assert (after["first"], after["uuid"] != before) == (4, True)
    head = ask(shop, "streams/system")["last"]
    event = ask(shop, f"streams/system/events/{head}")
    assert (event["type"], event["attributes"]["reason"]) == ("log.recovered", "restored")


@pytest.mark.req("EMC-26")
def test_the_report_lists_both_policies_and_what_they_did(zone: LiveZone) -> None:
    """The short-term stream is trimmed by its cap; the audit stream is not touched."""
    zone.create_stream("short", segment_events_max=10, retain_events=30)
    zone.create_stream("audit", segment_events_max=10, segment_age_s_max=3600, retain_age_s=86400)
    for stream in ("short", "audit"):
        zone.emit(stream, [{"domain": "d", "type": "t"}] * 100)
    found: dict[str, Any] = {}
    while found.get("short", {}).get("first") != 71:
        report = ask(zone, "storage")
        found = {one["name"]: one for one in report["streams"]}
    assert found["short"]["policy"]["retain_events"] == 30
    assert found["short"]["removed"] == {"count": 7}
    assert found["short"]["segments"]["dropped"] == 7
    assert found["audit"]["policy"]["retain_age_s"] == 86400
    assert (found["audit"]["removed"], found["audit"]["first"]) == ({}, 1)
    assert report["archive"] == {"segments": 0, "bytes": 0}


def test_what_the_whole_hub_takes_is_for_operators(shop: LiveZone) -> None:
    """A zone's manager is told of its own streams, and whether there is room."""
    report = ask(shop, "storage")
    hub_wide = ("used_bytes", "held", "quota_bytes", "disk", "groups")
    assert [report[name] for name in hub_wide] == [None] * 5
    assert report["state"] == "ok"
    seen = shop.hub.operate("GET", f"/v1/storage?zone={shop.name}").json
    assert seen["used_bytes"] == sum(seen["held"].values()) > 0
    assert seen["partitions"] > 0


def test_storage_is_for_managers_and_the_quota_for_operators(shop: LiveZone) -> None:
    some = shop.key("manage:orders.*", "listen:*")
    shop.hub.call("GET", "/v1/storage", key=some).refused(403, "forbidden")
    body = {"quota_bytes": 1 << 40}
    shop.hub.call("PUT", "/v1/storage", body, key=shop.admin).refused(403, "forbidden")
    set_to = shop.hub.operate("PUT", "/v1/storage", body)
    assert (set_to.status, set_to.json["quota_bytes"]) == (200, 1 << 40)
    assert shop.hub.operate("GET", "/v1/storage").json["quota_bytes"] == 1 << 40
    told = ask(shop, f"streams/system/events/{set_to.headers['eventhub-sequence']}")
    assert (told["type"], told["attributes"]) == ("storage.quota_set", body)
    for wrong in (0, 1.5, "1", 1 << 60):
        refusal = shop.hub.operate("PUT", "/v1/storage", {"quota_bytes": wrong})
        refusal.refused(400, "invalid_field")
    back = shop.hub.operate("PUT", "/v1/storage", {"quota_bytes": None})
    assert back.json["quota_bytes"] is None
