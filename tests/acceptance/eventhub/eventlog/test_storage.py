"""The storage report and the quota setting."""

from typing import Any

import pytest

from tests.acceptance.eventhub.eventlog.test_boot import ask
from tests.live import LiveZone


@pytest.mark.req("EMC-26")
def test_the_report_lists_policies_and_what_they_dropped(zone: LiveZone) -> None:
    """The short-term stream is trimmed by its limit; the audit stream is not."""
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


def test_only_operators_see_the_storage_of_the_whole_hub(zone: LiveZone) -> None:
    """A zone's manager sees its own streams, and whether there is space."""
    report = ask(zone, "storage")
    hub_wide = ("used_bytes", "usage", "quota_bytes", "disk", "partitions")
    assert [report[name] for name in hub_wide] == [None] * 5
    assert report["state"] == "ok"
    seen = zone.hub.operate("GET", f"/v1/storage?zone={zone.name}").json
    assert seen["used_bytes"] == sum(seen["usage"].values()) > 0
    assert seen["partitions"] > 0


def test_storage_is_for_managers_and_the_quota_for_operators(zone: LiveZone) -> None:
    some = zone.key("manage:orders.*", "listen:*")
    zone.hub.call("GET", "/v1/storage", key=some).refused(403, "forbidden")
    body = {"quota_bytes": 1 << 40}
    zone.hub.call("PUT", "/v1/storage", body, key=zone.admin).refused(403, "forbidden")
    set_to = zone.hub.operate("PUT", "/v1/storage", body)
    assert (set_to.status, set_to.json["quota_bytes"]) == (200, 1 << 40)
    assert zone.hub.operate("GET", "/v1/storage").json["quota_bytes"] == 1 << 40
    announced = ask(zone, f"streams/system/events/{set_to.headers['eventhub-sequence']}")
    assert announced["attributes"].pop("by")["kind"] == "operator"
    assert (announced["type"], announced["attributes"]) == ("storage.quota_set", body)
    for wrong in (0, 1.5, "1", 1 << 60):
        refusal = zone.hub.operate("PUT", "/v1/storage", {"quota_bytes": wrong})
        refusal.refused(400, "invalid_field")
    back = zone.hub.operate("PUT", "/v1/storage", {"quota_bytes": None})
    assert back.json["quota_bytes"] is None
