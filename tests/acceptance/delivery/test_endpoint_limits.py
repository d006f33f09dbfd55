"""The settings of retries and limits of an endpoint, and its circuit, in the management API."""

from typing import Any

import pytest

from tests.live import LiveHub, LiveZone

URL = "https://hooks.example/x"
SETTINGS = {
    "retry_schedule": [1, 60, 3_600],
    "rate_limit": 0.5,
    "concurrency": 3,
    "timeout_s": 5,
    "disable_after_s": 7_200,
}
CLOSED = {"state": "closed", "failures": 0, "since": None, "next_probe_at": None}


def test_an_endpoint_has_settings_that_can_be_changed_and_removed(
    hub: LiveHub, zone: LiveZone
) -> None:
    made = zone.endpoint(URL, **SETTINGS)
    assert made.items() >= SETTINGS.items()
    assert made["circuit"] == CLOSED
    path = f"/v1/endpoints/{made['id']}"
    assert hub.call("GET", path, key=zone.admin).json.items() >= SETTINGS.items()
    [listed] = hub.call("GET", "/v1/endpoints", key=zone.admin).json["items"]
    assert listed.items() >= {**SETTINGS, "circuit": CLOSED}.items()
    nothing = dict.fromkeys(SETTINGS)
    changed = hub.call("PATCH", path, nothing, key=zone.admin)
    assert changed.status == 200, changed
    assert changed.json.items() >= nothing.items()
    none = hub.call("PATCH", path, {"retry_schedule": [], "disable_after_s": 0}, key=zone.admin)
    assert (none.json["retry_schedule"], none.json["disable_after_s"]) == ([], 0)
    assert zone.endpoint(URL).items() >= nothing.items()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("retry_schedule", [0]),
        ("retry_schedule", [86_401]),
        ("retry_schedule", [1.5]),
        ("retry_schedule", ["5"]),
        ("retry_schedule", 5),
        ("retry_schedule", [1] * 31),
        ("retry_schedule", [86_400] * 15),
        ("rate_limit", 0),
        ("rate_limit", 10_001),
        ("rate_limit", "5"),
        ("rate_limit", True),
        ("concurrency", 0),
        ("concurrency", 1_001),
        ("concurrency", 2.5),
        ("timeout_s", 0),
        ("timeout_s", 31),
        ("disable_after_s", 3_599),
        ("disable_after_s", 2_592_001),
        ("disable_after_s", -1),
    ],
)
def test_settings_out_of_bounds_are_refused(
    hub: LiveHub, zone: LiveZone, field: str, value: Any
) -> None:
    answer = hub.call("POST", "/v1/endpoints", {"url": URL, field: value}, key=zone.admin)
    assert answer.status == 400, answer
    assert answer.json["position"]["field"].startswith(field)


def test_an_open_circuit_shows_since_when_and_until_when(hub: LiveHub, zone: LiveZone) -> None:
    endpoint = zone.endpoint(URL)["id"]
    hub.sql(
        "INSERT INTO circuits (endpoint_id, state, failures, failing_since, failed_at, opened_at,"
        " pause_s, retry_at, outcome, segment_id, sequence) VALUES (%s, 'open', 7,"
        " '2026-11-21T08:00:00Z', now(), '2026-11-21T08:00:09Z', 8, '2026-11-21T08:00:17Z',"
        " 'timeout', 1, 1)",
        endpoint,
    )
    found = hub.call("GET", f"/v1/endpoints/{endpoint}", key=zone.admin).json["circuit"]
    assert found == {
        "state": "open",
        "failures": 7,
        "since": "2026-11-21T08:00:09.000000Z",
        "next_probe_at": "2026-11-21T08:00:17.000000Z",
    }
