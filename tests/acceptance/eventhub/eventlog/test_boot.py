"""`manage.py boot`: the marker, restated keys, and new segments after a restore. A whole hub is
restarted in test_restarts.py.
"""

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
    """Run a hub for this module: a start concerns all zones."""
    with live_hub(tmp_path_factory.mktemp("boot"), count=1) as running:
        yield running


@pytest.fixture
def shop(own_hub: LiveHub) -> LiveZone:
    return own_hub.new_zone()


def ask(zone: LiveZone, path: str) -> Any:
    answer = zone.hub.call("GET", f"/v1/{path}", key=zone.admin)
    assert answer.status == 200, answer
    return answer.json


def events_from(zone: LiveZone, stream: str, start: str) -> list[dict[str, Any]]:
    """Return all events after a start, by long polling."""
    found: list[dict[str, Any]] = []
    while True:
        page = ask(zone, f"streams/{stream}/events?from={start}&limit=100")
        found += page["events"]
        start = f"{page['cursor']['segment']}:{page['cursor']['sequence']}"
        if page["cursor"]["sequence"] >= page["head"]:
            return found


def restated(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["event"] for one in events
            if one["event"].get("environment", {}).get("reason") == "restart"]  # fmt: skip


def test_a_start_is_visible_to_the_managers_of_all_zones(shop: LiveZone) -> None:
    other = shop.hub.new_zone()
    shop.hub.manage("boot")
    sequence = ask(shop, "boot")["sequence"] + 1
    for zone in (shop, other):
        assert ask(zone, f"streams/system/events/{sequence}")["type"] == "hub.started"
    listener = shop.key("listen:*")
    refusal = shop.hub.call("GET", f"/v1/streams/system/events/{sequence}", key=listener)
    refusal.refused(403, "forbidden")


@pytest.mark.req("EMC-18")
def test_a_start_that_is_killed_is_completed_by_the_next(shop: LiveZone) -> None:
    """A restated event is never older than one that a reader got for the key."""
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
    assert len(restated([{"event": one} for one in state])) == len(keys)
    [last] = [one for one in state if one["key"] == keys[-1]]
    assert last["attributes"] == {"new": True}


def test_a_stream_without_restate_gets_no_events_at_a_start(shop: LiveZone) -> None:
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
