"""The hub's health in its public routes: what does not work, by name for everybody, and with the
reason for a key.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.live import LiveHub, LiveZone
from tests.sink import Sink

WAIT_S = 30.0
HEARTBEATS = (
    "INSERT INTO heartbeats (part, last_seen_at) SELECT unnest(%s::text[]), now()"
    " ON CONFLICT (part) DO UPDATE SET last_seen_at = now()"
)
WELL = ("ok", "off", "starting")
TIMED = ["beat", "archiver", "indexer"]
EVENT = {"domain": "shop", "type": "order.placed"}


def eventually(found: Callable[[], Any], expected: Any) -> None:
    """Wait for a check, which the hub makes every two seconds."""
    until = time.monotonic() + WAIT_S
    while (last := found()) != expected:
        assert time.monotonic() < until, last
        time.sleep(0.1)


def component(hub: LiveHub, name: str) -> dict[str, Any]:
    """Return one component as `/readyz` shows it to everybody."""
    found = hub.call("GET", "/readyz").json["components"]
    return next(each for each in found if each["name"] == name)


def overall(hub: LiveHub) -> tuple[int, str]:
    """Return the overall status; a busy machine is not ready for a moment."""
    answer = hub.call("GET", "/readyz")
    return answer.status, answer.json["status"]


def status_of_the_hub(hub: LiveHub) -> tuple[int, str, str]:
    """Return the hub's status and the one expected from its components: what other tests left may
    be degraded.
    """
    answer = hub.call("GET", "/readyz")
    wrong = [each for each in answer.json["components"] if each["status"] not in WELL]
    return answer.status, answer.json["status"], "degraded" if wrong else "ready"


def reason(hub: LiveHub, name: str, key: str) -> dict[str, Any]:
    """Return the component's reason, as shown to a key."""
    eventually(lambda: "reason" in hub.call("GET", "/readyz", key=key).json["components"][0], True)
    found = hub.call("GET", "/readyz", key=key).json["components"]
    return next(each for each in found if each["name"] == name)


def gauge(hub: LiveHub, name: str) -> str:
    [line] = [
        line
        for line in hub.call("GET", "/metrics").body.decode().splitlines()
        if line.startswith(f'eventhub_health{{component="{name}"')
    ]
    return line.rpartition(" ")[2]


@pytest.fixture
def idle(hub: LiveHub, sink: Sink) -> Iterator[LiveHub]:
    """Stop all workers, without a heartbeat for a minute."""
    eventually(lambda: component(hub, "workers")["status"], "ok")
    for process in hub.workers:
        process.stop()
    hub.sql(
        "UPDATE heartbeats SET last_seen_at = now() - interval '1 minute' WHERE part = 'worker'"
    )
    hub.sql("UPDATE callback_workers SET last_seen_at = now() - interval '1 minute'")
    yield hub
    hub.start_callbacks()


def test_without_workers_the_hub_is_degraded_with_a_reason(
    idle: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """All workers were stopped, nothing was delivered, and every probe and badge showed ok."""
    eventually(lambda: component(idle, "workers"), {"name": "workers", "status": "degraded"})
    eventually(lambda: overall(idle), (200, "degraded"))
    shown = reason(idle, "workers", zone.admin)
    assert "No worker is alive" in shown["reason"]
    assert shown["since"]
    idle.call("GET", "/readyz", key="ehk_unknown_unknown").refused(401, "invalid_credentials")
    overview = idle.call("GET", "/v1/overview", key=zone.admin).json
    assert shown in overview["health"]["components"]
    assert overview["processes"]["workers"] == 0
    eventually(lambda: gauge(idle, "workers"), "0.0")

    zone.create_stream("orders")
    [made] = zone.register({"streams": ["orders"], "callback": sink.url("/health")})
    zone.emit("orders", EVENT)
    late = (
        "UPDATE deliveries SET next_attempt_at = now() - interval '75 s'"
        " WHERE %s = ANY (registrations) RETURNING 1"
    )
    eventually(lambda: idle.sql(late, made["id"]), [(1,)])
    eventually(lambda: component(idle, "deliveries")["status"], "degraded")
    assert "no worker has claimed it" in reason(idle, "deliveries", zone.admin)["reason"]

    idle.start_callbacks()
    sink.wait(1, "/health")
    eventually(lambda: component(idle, "deliveries")["status"], "ok")
    eventually(lambda: component(idle, "workers")["status"], "ok")
    idle.sql(HEARTBEATS, TIMED)
    eventually(lambda: component(idle, "beat")["status"], "ok")
    status, overall_status, expected = status_of_the_hub(idle)
    assert (status, overall_status) == (200, expected)


def test_a_failing_endpoint_shows_its_state_and_since_when(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """The hub answered every request with 500, and the API only said that it was enabled."""

    def health() -> dict[str, Any]:
        path = f"/v1/endpoints/{made['id']}"
        found: dict[str, Any] = hub.call("GET", path, key=zone.admin).json["health"]
        return found

    zone.create_stream("orders")
    made = zone.endpoint(sink.url("/failing"))
    assert made["health"]["state"] == "untried"
    zone.register({"streams": ["orders"], "endpoint": made["id"]})
    sink.answer = lambda _: (500, {})
    zone.emit("orders", EVENT)
    eventually(lambda: health()["state"], "failing")
    failing = health()
    assert (failing["outcome"], failing["status"], failing["delivered_at"]) == ("status", 500, None)
    assert failing["failing_since"] <= failing["last_attempt_at"]
    answer = hub.call("GET", "/v1/overview", key=zone.admin)
    assert answer.status == 200, (answer, hub.web[0].log()[-3000:])
    overview = answer.json
    assert overview["endpoints"] == {"enabled": 1, "disabled": 0, "failing": 1, "total": 1}
    sink.wait(2, "/failing")
    assert health()["failing_since"] == failing["failing_since"]

    sink.answer = lambda _: (204, {})
    zone.emit("orders", EVENT)
    eventually(lambda: health()["state"], "ok")
    assert health()["failing_since"] is None
    moved = hub.call("PATCH", path(made), {"url": sink.url("/moved")}, key=zone.admin)
    assert moved.json["health"]["state"] == "untried"


def path(endpoint: dict[str, Any]) -> str:
    return f"/v1/endpoints/{endpoint['id']}"
