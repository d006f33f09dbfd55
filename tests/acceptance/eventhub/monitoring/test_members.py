"""Members of the hub: the list, and the events when one joins or leaves."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from eventhub.base.version import VERSION
from tests.live import LiveHub, LiveZone, live_hub
from tests.live_processes import LiveProcess

TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def own_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """Run a hub whose processes come and go."""
    with live_hub(tmp_path_factory.mktemp("members")) as running:
        yield running


@pytest.fixture
def watcher(own_hub: LiveHub) -> LiveZone:
    return own_hub.new_zone()


def members(hub: LiveHub, web: int = 0) -> dict[int, dict[str, Any]]:
    """Return the members by process id."""
    answer = hub.call("GET", "/v1/members", headers=hub.operator(), url=hub.web[web].url)
    assert answer.status == 200, answer
    return {one["pid"]: one for one in answer.json["items"]}


def changes(zone: LiveZone, web: int = 0) -> list[dict[str, Any]]:
    """Return the attributes of all events about members."""
    path = "/v1/streams/system/events?from=oldest&limit=1000"
    answer = zone.hub.call("GET", path, key=zone.admin, url=zone.hub.web[web].url)
    assert answer.status == 200, answer
    found = [one["event"] for one in answer.json["events"]]
    return [
        {**one["attributes"], "type": one["type"]}
        for one in found
        if one["type"].startswith("member.")
    ]


def of_process(zone: LiveZone, pid: int, web: int = 0) -> list[tuple[str, str, str]]:
    return [
        (one["type"], one["change"], one.get("reason", ""))
        for one in changes(zone, web)
        if one["pid"] == pid
    ]


def until_left(zone: LiveZone, pid: int, web: int = 0) -> list[tuple[str, str, str]]:
    until_s = time.monotonic() + TIMEOUT_S
    while len(found := of_process(zone, pid, web)) < 2:
        assert time.monotonic() < until_s, found
        time.sleep(0.1)
    return found


def start(hub: LiveHub, process: LiveProcess) -> int:
    process.start()
    hub.until_announced(process)
    return process.pid


@pytest.mark.req("SUN-21")
def test_a_second_worker_that_starts_and_stops_joins_and_leaves(watcher: LiveZone) -> None:
    hub = watcher.hub
    first = start(hub, hub.workers[0])
    [(before,)] = hub.sql("SELECT clock_timestamp()")
    second = start(hub, hub.workers[1])
    found = members(hub)
    assert {found[first]["kind"], found[second]["kind"]} == {"worker"}
    assert found[second]["version"] == VERSION
    assert found[second]["node"]
    assert found[second]["started_at"] <= found[second]["last_seen_at"]
    assert datetime.fromisoformat(found[second]["started_at"]) > before
    hub.workers[1].stop()
    assert until_left(watcher, second) == [
        ("member.joined", "join", ""),
        ("member.left", "leave", "left"),
    ]
    assert second not in members(hub)
    assert of_process(watcher, first) == [("member.joined", "join", "")]
    hub.workers[0].stop()


def test_all_kinds_are_members_and_only_operators_see_the_list(watcher: LiveZone) -> None:
    hub = watcher.hub
    pid = start(hub, hub.forwarders[0])
    try:
        found = members(hub)
        assert found[pid]["kind"] == "forwarder"
        assert [found[one.pid]["kind"] for one in hub.web] == ["web", "web"]
        hub.call("GET", "/v1/members", key=watcher.admin).refused(403, "forbidden")
    finally:
        hub.forwarders[0].stop()


@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_is_lost_once_also_if_it_announced_the_others(
    watcher: LiveZone, killed: int
) -> None:
    """Each of the two web processes is killed in turn, so one of them was the one that acts."""
    hub, other = watcher.hub, 1 - killed
    pid = hub.web[killed].pid
    hub.web[killed].kill()
    try:
        joined = start(hub, hub.workers[killed])
        expected = [("member.joined", "join", ""), ("member.left", "leave", "lost")]
        assert until_left(watcher, pid, other) == expected
    finally:
        hub.workers[killed].stop()
        hub.web[killed].start()
    hub.until_announced(hub.web[killed])
    assert until_left(watcher, joined, other)[1] == ("member.left", "leave", "left")
    assert until_left(watcher, pid, killed) == expected
    assert of_process(watcher, hub.web[killed].pid) == [("member.joined", "join", "")]
