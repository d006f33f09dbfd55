"""The statistics of an endpoint, read over the API while workers post to it."""

import time
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.live import LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed"}
NONE = {"client_errors": 0, "server_errors": 0, "timeouts": 0, "connection_errors": 0, "other": 0}


def statistics(zone: LiveZone, endpoint: int, query: str = "") -> dict[str, Any]:
    answer = zone.hub.call("GET", f"/v1/endpoints/{endpoint}/statistics{query}", key=zone.admin)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def counted(zone: LiveZone, endpoint: int, attempts: int) -> dict[str, Any]:
    """Return the statistics once this many attempts are counted."""
    until = time.monotonic() + 60
    while (found := statistics(zone, endpoint))["total"]["attempts"] < attempts:
        assert time.monotonic() < until, found["total"]
        time.sleep(0.05)
    return found


def test_attempts_latency_and_backlog_are_shown_over_time(zone: LiveZone, sink: Sink) -> None:
    zone.create_stream("orders")
    path = f"/{zone.name}"
    answers = iter([(500, {}), (404, {})])
    sink.answer = lambda _called: next(answers, (204, {}))
    endpoint = zone.endpoint(sink.url(path), ordered=True, retry_schedule=[1, 1, 1])["id"]
    zone.register({"streams": ["orders"], "endpoint": endpoint})
    assert zone.emit("orders", [EVENT] * 10).status == 200
    found = counted(zone, endpoint, 12)
    total = found["total"]
    assert (total["attempts"], total["delivered"]) == (12, 10)
    assert total["failures"] == {**NONE, "server_errors": 1, "client_errors": 1}
    for times in (total["duration_ms"], total["latency_ms"]):
        assert 0 < times["p50"] <= times["p95"] <= times["p99"] < 60_000
    assert total["latency_ms"]["p99"] > 500, "the last ones waited for two retries"
    assert (found["endpoint"], found["pending"]) == (endpoint, 0)
    points = found["points"]
    assert (found["step"], found["step_s"], len(points)) == ("minute", 60, 60)
    assert sum(point["attempts"] for point in points) == 12
    assert points[0]["latency_ms"] is None and points[0]["failures"] == NONE
    starts = [datetime.fromisoformat(point["starts_at"]) for point in points]
    assert {b - a for a, b in pairwise(starts)} == {timedelta(minutes=1)}
    hours = statistics(zone, endpoint, "?step=hour")
    assert (hours["step_s"], len(hours["points"]), hours["total"]) == (3_600, 168, total)


def test_an_endpoint_without_attempts_has_zeros_and_its_backlog(zone: LiveZone) -> None:
    zone.create_stream("orders")
    endpoint = zone.endpoint("https://hooks.example/")["id"]
    zone.hub.call("PATCH", f"/v1/endpoints/{endpoint}", {"enabled": False}, key=zone.admin)
    zone.register({"streams": ["orders"], "endpoint": endpoint})
    assert zone.emit("orders", [EVENT] * 3).status == 200
    until = time.monotonic() + 60
    while (found := statistics(zone, endpoint))["pending"] < 3:
        assert time.monotonic() < until, found["pending"]
        time.sleep(0.05)
    assert found["total"] == {
        "attempts": 0, "delivered": 0, "failures": NONE, "duration_ms": None, "latency_ms": None,
    }  # fmt: skip
    until = time.monotonic() + 60
    while max(point["pending"] for point in found["points"]) < 3:
        assert time.monotonic() < until
        time.sleep(0.05)
        found = statistics(zone, endpoint)


@pytest.mark.parametrize("query", ["?step=day", "?step="])
def test_another_step_is_refused(zone: LiveZone, query: str) -> None:
    endpoint = zone.endpoint("https://hooks.example/")["id"]
    path = f"/v1/endpoints/{endpoint}/statistics{query}"
    problem = zone.hub.call("GET", path, key=zone.admin).refused(400, "invalid_field")
    assert problem["position"]["field"] == "step" and "minute, hour" in problem["detail"]


def test_a_deleted_endpoint_has_none(zone: LiveZone) -> None:
    endpoint = zone.endpoint("https://hooks.example/")["id"]
    path = f"/v1/endpoints/{endpoint}"
    assert zone.hub.call("DELETE", path, key=zone.admin).status == 204
    zone.hub.call("GET", f"{path}/statistics", key=zone.admin).refused(404, "unknown_endpoint")
