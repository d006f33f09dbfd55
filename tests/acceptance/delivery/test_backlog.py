"""Deliveries that endpoints do not receive: the backlog of a disabled endpoint is bounded, so that
others continue, and losses are announced.
"""

import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.eventhub.eventlog.test_retention import announced, wait_for
from tests.live import LiveHub, LiveZone, live_hub
from tests.sink import Called, Sink

EVENT = {"domain": "shop", "type": "order.placed"}
LARGE = {**EVENT, "body": secrets.token_urlsafe(15_000)}  # 20 KB that no compression makes smaller
PENDING_MAX = 40


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_disabled_endpoint_does_not_block_emits_and_later_gets_a_notice_and_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deliveries filled the hub's quota with the bytes of their events, which outlive those of
    the log, until emits were answered 507 in every zone for ever.
    """
    monkeypatch.setenv("EVENTHUB_QUOTA_BYTES", str(32 * 1024 * 1024))
    monkeypatch.setenv("EVENTHUB_BACKLOG_EVENTS", str(PENDING_MAX))
    with live_hub(tmp_path, count=1) as hub, Sink().serving() as sink:
        hub.start_callbacks()
        one, two = hub.new_zone(), hub.new_zone()
        for zone in (one, two):
            zone.create_stream("orders", segment_events_max=50)
        endpoint = one.endpoint(sink.url("/late"), ordered=True)["id"]
        change(one, endpoint, enabled=False)
        [made] = one.register({"streams": ["orders"], "endpoint": endpoint})
        rounds = 48
        for _ in range(rounds):
            for zone, batch in ((one, [LARGE] * 50), (two, [EVENT])):
                wait_for(lambda zone=zone, batch=batch: taken(zone, batch), "an emit to be taken")
        last = rounds * 50
        wait_for(lambda: matched(one) == last, "all to be matched")
        wait_for(lambda: pending(hub, endpoint) <= PENDING_MAX, "the oldest to be dropped")
        listed = hub.call("GET", "/v1/deliveries?state=dropped&limit=1", key=one.admin).json
        assert listed["items"][0]["endpoint"] == endpoint
        dropped = announced(one, "delivery.dropped")
        assert dropped[0].items() >= {
            "zone": one.name, "client": "tester", "endpoint": endpoint, "level": "warning",
            "bound": "endpoint",
        }.items()  # fmt: skip
        assert announced(two, "delivery.dropped") == []
        change(one, endpoint, enabled=True)
        wait_for(lambda: reached(sink.at("/late")) == last, "the remaining deliveries")
        called = sink.at("/late")
        notices = [one for one in called if one.json.get("gap", {}).get("why") == "backlog"]
        assert notices
        for notice in notices:
            assert notice.id.endswith("_gap")
            assert notice.json["registrations"] == [made["id"]]
            assert notice.json["gap"]["resume"]["sequence"] == notice.json["gap"]["last"]
        events = [one for one in called if "event" in one.json]
        assert PENDING_MAX * 0.8 <= len(events) <= PENDING_MAX
        assert events[0].json["event"]["body"] == LARGE["body"]


def change(zone: LiveZone, endpoint: int, **fields: Any) -> None:
    answer = zone.hub.call("PATCH", f"/v1/endpoints/{endpoint}", fields, key=zone.admin)
    assert answer.status == 200, answer


def taken(zone: LiveZone, batch: list[dict[str, Any]]) -> bool:
    answer = zone.emit("orders", batch)
    if answer.status != 200:
        answer.refused(507, "storage_full")
        time.sleep(0.05)
    return answer.status == 200


def overview(zone: LiveZone) -> Any:
    return zone.hub.call("GET", "/v1/overview", key=zone.admin).json


def matched(zone: LiveZone) -> int | None:
    streams = overview(zone)["streams"]
    found: list[int | None] = [one["matched"] for one in streams if one["name"] == "orders"]
    return found[0]


def pending(hub: LiveHub, endpoint: int) -> int:
    """Return the pending events. A forwarder that lags behind the quota adds notices of its own."""
    [(count,)] = hub.sql(
        "SELECT count(*) FROM deliveries"
        " WHERE endpoint_id = %s AND state = 'pending' AND gap_first IS NULL",
        endpoint,
    )
    return int(count)


def reached(called: list[Called]) -> int:
    """Return the sequence up to which an endpoint received everything, in order: as events or as
    gaps.
    """
    last = 0
    for each in called:
        gap = each.json.get("gap")
        first, end = (gap["first"], gap["last"]) if gap else (each.json["sequence"],) * 2
        assert first <= last + 1 <= end + 1, f"{first} to {end} after {last}"
        last = max(last, end)
    return last


def test_dead_letters_are_announced_counted_and_listed(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """A dead letter was only visible in its own row, to those who looked at the endpoint. A mass
    failure produces one event for each endpoint.
    """
    before = dead_letter_count(hub)
    sink.answer = lambda _called: (500, {})
    zone.create_stream("orders")
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    zone.register({"streams": ["orders"], "endpoint": endpoint})
    zone.emit("orders", [EVENT] * 50)

    def last_attempt() -> bool:
        """Skip earlier attempts and the open circuit; return True once all have failed."""
        hub.sql(
            "UPDATE deliveries SET attempts = 9, next_attempt_at = now()"
            " WHERE endpoint_id = %s AND state = 'pending' AND claim IS NULL",
            endpoint,
        )
        hub.sql("DELETE FROM circuits WHERE endpoint_id = %s", endpoint)
        return len(dead_letters(zone)) == 50

    wait_for(last_attempt, "the last attempts to fail")
    assert {item["endpoint"] for item in dead_letters(zone)} == {endpoint}
    wait_for(lambda: bool(announced(zone, "delivery.dead_lettered")), "the event")
    [event] = announced(zone, "delivery.dead_lettered")
    assert event.items() >= {
        "zone": zone.name, "client": "tester", "endpoint": endpoint, "level": "warning",
    }.items()  # fmt: skip
    assert 1 <= event["deliveries"] <= 50
    assert 1 <= event["first"]["sequence"] <= event["last"]["sequence"] <= 50
    assert event["first"]["stream"] == "orders"
    assert event["first"]["segment"] == dead_letters(zone)[0]["segment"]
    assert dead_letter_count(hub) - before == 50


def dead_letters(zone: LiveZone) -> list[dict[str, Any]]:
    answer = zone.hub.call("GET", "/v1/deliveries?state=dead_lettered&limit=100", key=zone.admin)
    assert answer.status == 200, answer
    items: list[dict[str, Any]] = answer.json["items"]
    return items


def dead_letter_count(hub: LiveHub) -> float:
    """Return the metric, of all processes of the hub."""
    lines = hub.call("GET", "/metrics").body.decode().splitlines()
    return sum(float(line.split()[1]) for line in lines
               if line.startswith("eventhub_callback_dead_lettered_total"))  # fmt: skip
