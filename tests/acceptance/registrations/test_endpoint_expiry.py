"""Endpoints that expire are deleted with their registrations."""

from datetime import UTC, datetime, timedelta
from typing import Any

from registrations.endpoints.expiry import delete_expired
from tests.live import LiveHub, LiveZone


def later(**age: float) -> str:
    return (datetime.now(UTC) + timedelta(**age)).isoformat()


def events(hub: LiveHub, zone: LiveZone, type: str) -> list[dict[str, Any]]:
    path = f"/v1/streams/system/events?from=oldest&limit=1000&type={type}"
    page = hub.call("GET", path, key=zone.admin).json
    return [item["event"]["attributes"] for item in page["events"]]


def test_an_expired_endpoint_ends_with_its_registrations(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    url = "https://hooks.example/events"
    kept, expired = (zone.endpoint(url, expires_at=later(hours=1)) for _ in range(2))
    assert kept["expires_at"] > datetime.now(UTC).isoformat()
    ended, stays = zone.register(
        *({"streams": ["orders"], "endpoint": one["id"]} for one in (expired, kept))
    )
    hub.sql("UPDATE endpoints SET expires_at = now() WHERE id = %s", expired["id"])
    assert delete_expired(hub.database_url) == 1
    assert delete_expired(hub.database_url) == 0

    def status(path: str) -> int:
        return hub.call("GET", path, key=zone.admin).status

    assert (
        status(f"/v1/endpoints/{expired['id']}")
        == status(f"/v1/registrations/{ended['id']}")
        == 404
    )
    assert (
        status(f"/v1/endpoints/{kept['id']}") == status(f"/v1/registrations/{stays['id']}") == 200
    )
    [deleted] = events(hub, zone, "endpoint.deleted")
    assert (deleted["endpoint"], deleted["expired"]) == (expired["id"], True)
    [over] = events(hub, zone, "registration.deleted")
    assert (over["registration"], over["streams"]) == (ended["id"], ["orders"])
    path = f"/v1/endpoints/{kept['id']}"
    changed = hub.call("PATCH", path, {"expires_at": None}, key=zone.admin)
    assert changed.json["expires_at"] is None
    refused = hub.call("PATCH", path, {"expires_at": later(hours=-1)}, key=zone.admin)
    assert refused.refused(400, "invalid_field")["position"] == {"field": "expires_at"}
