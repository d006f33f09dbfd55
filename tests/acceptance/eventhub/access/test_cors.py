"""Browsers of other origins: nothing by default, the origins of the setting otherwise."""

from pathlib import Path

import pytest

from tests.acceptance.wire import EVENT
from tests.live import Answer, LiveHub, LiveZone
from tests.live_processes import WebProcess

OURS, STRANGE = "https://console.example.org", "https://evil.example.org"
PATHS = ("/v1/streams/orders/events", "/v1/streams")


def preflight(hub: LiveHub, path: str, origin: str, url: str = "") -> Answer:
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    return hub.call("OPTIONS", path, headers=headers, url=url or hub.url)


@pytest.mark.parametrize("path", PATHS)
def test_by_default_no_origin_is_allowed(hub: LiveHub, zone: LiveZone, path: str) -> None:
    zone.create_stream("orders")
    answer = preflight(hub, path, OURS)
    assert "access-control-allow-origin" not in answer.headers
    real = zone.emit("orders", EVENT, headers={"Origin": OURS})
    assert real.status == 200
    assert "access-control-allow-origin" not in real.headers


def test_the_origins_of_the_setting_are_allowed_on_all_routes(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    """One more web process of the hub has the setting."""
    zone.create_stream("orders")
    env = {**hub.env, "EVENTHUB_CORS_ORIGINS": f"https://other.example.org, {OURS}"}
    web = WebProcess("cors", env, tmp_path / "web.log")
    web.start()
    try:
        for path in PATHS:
            answer = preflight(hub, path, OURS, web.url)
            assert answer.status == 200
            assert answer.headers["access-control-allow-origin"] == OURS
            assert "POST" in answer.headers["access-control-allow-methods"]
            assert "authorization" in answer.headers["access-control-allow-headers"].lower()
            strange = preflight(hub, path, STRANGE, web.url)
            assert strange.status == 400
            assert "access-control-allow-origin" not in strange.headers
        real = zone.emit("orders", EVENT, headers={"Origin": OURS}, url=web.url)
        assert (real.status, real.headers["access-control-allow-origin"]) == (200, OURS)
        refused = zone.emit("orders", {}, headers={"Origin": OURS}, url=web.url)
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (400, OURS)
        strange = zone.emit("orders", EVENT, headers={"Origin": STRANGE}, url=web.url)
        assert "access-control-allow-origin" not in strange.headers
    finally:
        web.stop()
