"""Traces: each API call of a zone that has them on is an event."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.shell import Shell
from tests.acceptance.wire import numbered, session
from tests.live import Answer, LiveHub, LiveZone

TRACES = "/v1/streams/eventhub.traces"
FILTER = "(and (= @type 'call) (>= status 400))"
TIMEOUT_S = 60.0
SECRET = "sesame-4711"


@pytest.fixture
def traced(zone: LiveZone) -> Iterator[LiveZone]:
    """Yield a zone with traces on in both web processes; while one has them, the hub has no quick
    emits.
    """
    zone.create_stream("orders")
    answer = zone.hub.call("PATCH", "/v1/monitoring", {"traces": True}, key=zone.admin)
    assert (answer.status, answer.json) == (200, {"presence": False, "traces": True})
    for web in zone.hub.web:
        until_s, ids = time.monotonic() + TIMEOUT_S, set()
        while not any(one["request_id"] in ids for one in calls(zone)):
            answer = zone.hub.call("HEAD", "/v1/boot", key=zone.admin, url=web.url)
            ids.add(answer.headers["x-request-id"])
            assert time.monotonic() < until_s, "no call is traced"
            time.sleep(0.05)
    yield zone
    zone.hub.call("PATCH", "/v1/monitoring", {"traces": False}, key=zone.admin)


def calls(zone: LiveZone) -> list[dict[str, Any]]:
    """Return the attributes of all traces."""
    path = f"{TRACES}/events?from=oldest&limit=1000"
    answer = zone.hub.call("GET", path, key=zone.admin)
    assert answer.status == 200, answer
    return [one["event"]["attributes"] for one in answer.json["events"]]


def until_traced(zone: LiveZone, *answers: Answer) -> list[dict[str, Any]]:
    """Return the traces of calls, in the order of the calls."""
    ids = [answer.headers["x-request-id"] for answer in answers]
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        found = {one["request_id"]: one for one in calls(zone) if one["request_id"] in ids}
        if len(found) == len(ids):
            return [found[id] for id in ids]
        assert time.monotonic() < until_s, found
        time.sleep(0.05)


def shape(trace: dict[str, Any]) -> tuple[str, str, int]:
    return trace["method"], trace["route"], trace["status"]


@pytest.mark.req("OIF-31")
async def test_each_call_is_an_event_and_inspectors_and_logs_show_the_same_filtered_ones(
    hub: LiveHub, traced: LiveZone, tmp_path: Path
) -> None:
    """A page of the console, which is a websocket, and the command line filter alike."""
    log, key = tmp_path / "calls.log", traced.key("emit:*", client="till")
    async with session(hub, traced.admin) as inspector:
        started = await inspector.listen("eventhub.traces", language="predicate", filter=FILTER)
        cursor = f"{started['cursor']['segment']}:{started['cursor']['sequence']}"
        words = ["traces", "--follow", "--from", cursor, "--filter", FILTER, "--count", "2"]
        with Shell(traced).running(*words, "--file", str(log)) as following:
            bad = {"domain": SECRET, "type": "t", "attributes": SECRET}
            answers = [
                traced.emit("orders", numbered(1, 1), key=key),
                traced.emit("orders", bad, key=key),
                hub.call("GET", "/v1/registrations", key=traced.admin, url=hub.web[1].url),
                hub.call("GET", "/v1/registrations/999", key=traced.admin, url=hub.web[1].url),
            ]
            found = until_traced(traced, *answers)
            lines = [following.line(), following.line()]
        seen = await inspector.events(2)
    assert [shape(one) for one in found] == [
        ("POST", "/v1/streams/{stream}/events", 200),
        ("POST", "/v1/streams/{stream}/events", 400),
        ("GET", "/v1/registrations", 200),
        ("GET", "/v1/registrations/{registration}", 404),
    ]
    assert found[0]["actor"] == {"kind": "key", "key": key.split("_")[1], "client": "till"}
    assert all(0 < one["duration_ms"] < 60_000 for one in found)
    whole = json.dumps(calls(traced))
    assert SECRET not in whole
    assert key.split("_")[-1] not in whole
    expected = {answers[1].headers["x-request-id"], answers[3].headers["x-request-id"]}
    assert {one["event"]["attributes"]["request_id"] for one in seen} == expected
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    for shown in (lines, logged):
        assert [one["event"] for one in shown] == [one["event"] for one in seen]
        assert [one["sequence"] for one in shown] == [one["sequence"] for one in seen]


async def test_a_websocket_and_an_operator_are_traced_and_reading_traces_is_not(
    hub: LiveHub, traced: LiveZone
) -> None:
    async with session(hub, traced.admin):
        pass
    operated = hub.operate("GET", f"/v1/clients?zone={traced.name}")
    hub.operate("GET", "/v1/clients")  # of another zone
    [found] = until_traced(traced, operated)
    assert (shape(found), found["actor"]) == (
        ("GET", "/v1/clients", 200),
        {"kind": "operator", "operator": "operator"},
    )
    shapes = [shape(one) for one in calls(traced)]
    assert ("GET", "/v1/ws", 101) in shapes
    assert not any("events" in route for _, route, _ in shapes)


def test_traces_that_are_switched_off_end_and_are_for_managers_only(
    hub: LiveHub, traced: LiveZone
) -> None:
    key = traced.key("listen:*", "emit:*", client="till")
    refused = hub.call("GET", f"{TRACES}/events", key=key)
    refused.refused(403, "forbidden")
    event = {"domain": "eventhub", "type": "call"}
    hub.call("POST", f"{TRACES}/events", event, key=traced.admin).refused(403, "forbidden")
    answer = hub.call("PATCH", "/v1/monitoring", {"traces": False}, key=traced.admin)
    assert answer.json == {"presence": False, "traces": False}
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        before = len(calls(traced))
        hub.call("GET", "/v1/boot", key=traced.admin)
        time.sleep(1.0)  # the time in which a trace would come
        if len(calls(traced)) == before:
            return
        assert time.monotonic() < until_s, "calls are still traced"
