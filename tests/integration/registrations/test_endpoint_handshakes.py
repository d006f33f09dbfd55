"""Endpoints whose receivers must agree first, through the management API."""

from typing import Any

import pytest

from eventhub.base import limits
from registrations.endpoints.statements import SQL
from tests.integration.access_world import ApiCaller, caller_with, refused
from tests.integration.registrations.test_registrations import announced, made, rows, world
from tests.integration.registrations.test_registrations_endpoints import URL, new_endpoint

pytestmark = pytest.mark.django_db
OTHER_URL = "https://other.example/"
STATUS = ("enabled", "reason", "verified_at", "allowed_rate")


def agree(endpoint: int) -> None:
    """Write what a worker writes when the receiver agrees."""
    rows(
        "UPDATE endpoint_verifications SET ended_at = now(), outcome = 'verified', status = 200,"
        " detail = '', requested_at = now() - interval '1 minute' WHERE endpoint_id = %s"
        " RETURNING 1",
        endpoint,
    )
    rows(
        "UPDATE endpoints SET verified_at = now(), allowed_rate = 60, enabled = true, reason = NULL"
        " WHERE id = %s RETURNING 1",
        endpoint,
    )


def pending(caller: ApiCaller, endpoint: int) -> int:
    """Return the number of the verification, which is pending."""
    found = caller.get(f"/v1/endpoints/{endpoint}").json()
    assert found["verification"]["state"] == "pending"
    [(number,)] = rows("SELECT number FROM endpoint_verifications WHERE endpoint_id = %s", endpoint)
    return int(number)


@pytest.mark.parametrize("handshake", ["cloudevents", "challenge"])
def test_an_endpoint_waits_until_its_receiver_agrees(handshake: str) -> None:
    manager = world()
    found = new_endpoint(manager, handshake=handshake)
    assert found["handshake"] == handshake
    assert [found[name] for name in STATUS] == [False, "unverified", None, None]
    verification = found["verification"]
    assert verification.pop("requested_at")
    assert verification == {
        "state": "pending", "ended_at": None, "outcome": None, "status": None, "detail": None,
    }  # fmt: skip
    path = f"/v1/endpoints/{found['id']}"
    refused(manager.patch(path, {"enabled": True}), 409, "endpoint_unverified")
    agree(found["id"])
    shown = manager.get(path).json()
    assert (shown["enabled"], shown["allowed_rate"]) == (True, 60)
    assert shown["verification"]["state"] == "verified"
    assert manager.get("/v1/endpoints").json()["items"] == [shown]
    off = manager.patch(path, {"enabled": False}).json()
    assert (off["reason"], off["verified_at"]) == ("request", shown["verified_at"])
    assert manager.patch(path, {"enabled": True}).json()["enabled"] is True


def test_without_a_handshake_there_is_no_verification() -> None:
    manager = world()
    found = new_endpoint(manager)
    assert (found["handshake"], found["verification"]["state"]) == ("none", "none")
    path = f"/v1/endpoints/{found['id']}/verify"
    refused(manager.post(path), 409, "no_handshake")
    assert rows("SELECT count(*) FROM endpoint_verifications") == [(0,)]


@pytest.mark.parametrize("change", [{"url": OTHER_URL}, {"handshake": "challenge"}])
def test_another_receiver_must_agree_again(change: dict[str, Any]) -> None:
    manager = world()
    found = new_endpoint(manager, handshake="cloudevents")
    path = f"/v1/endpoints/{found['id']}"
    agree(found["id"])
    changed = manager.patch(path, {**change, "enabled": True}).json()
    assert [changed[name] for name in STATUS] == [False, "unverified", None, None]
    assert pending(manager, found["id"]) == 2
    [(type, event)] = announced(1)
    assert (type, event["enabled"], event["reason"]) == ("endpoint.changed", False, "unverified")
    agree(found["id"])
    manager.patch(path, {"enabled": False})
    changed = manager.patch(path, {"url": "https://third.example/"}).json()
    assert [changed[name] for name in STATUS] == [False, "request", None, None]
    assert pending(manager, found["id"]) == 3


def test_an_endpoint_that_no_longer_needs_a_handshake_is_called_again() -> None:
    manager = world()
    found = new_endpoint(manager, handshake="challenge")
    changed = manager.patch(f"/v1/endpoints/{found['id']}", {"handshake": "none"}).json()
    assert [changed[name] for name in STATUS] == [True, None, None, None]
    assert changed["verification"]["state"] == "none"


def test_a_verification_is_repeated_on_request() -> None:
    manager = world()
    found = new_endpoint(manager, handshake="challenge")
    path = f"/v1/endpoints/{found['id']}/verify"
    answer = manager.post(path)
    assert answer.status_code == 202
    assert pending(manager, found["id"]) == 1
    agree(found["id"])
    assert manager.post(path).status_code == 202
    assert pending(manager, found["id"]) == 2
    rows("UPDATE endpoint_verifications SET ended_at = now(), outcome = 'refused' RETURNING 1")
    answer = manager.post(path)
    refused(answer, 429, "too_many_requests")
    assert answer["Retry-After"] == str(limits.VERIFICATION_INTERVAL_S)
    shown = manager.get(f"/v1/endpoints/{found['id']}").json()
    assert (shown["enabled"], shown["verification"]["state"]) == (True, "failed")


def test_an_endpoint_of_another_client_is_not_verified() -> None:
    world()
    theirs = new_endpoint(caller_with("listen:*", client_name="them"), handshake="challenge")
    mine = caller_with("listen:*", client_name="me")
    refused(mine.post(f"/v1/endpoints/{theirs['id']}/verify"), 404, "unknown_endpoint")


def test_a_registration_may_name_an_endpoint_that_waits() -> None:
    manager = world()
    found = new_endpoint(manager, handshake="challenge")
    registration = made(manager, {"streams": ["orders"], "endpoint": found["id"]})
    assert registration["callback"] == URL


@pytest.mark.parametrize("change", [{}, {"url": OTHER_URL}])
def test_an_endpoint_that_waits_may_be_disabled_by_its_client(change: dict[str, Any]) -> None:
    """The request was lost, and the receiver's consent enabled the endpoint."""
    manager = world()
    found = new_endpoint(manager, handshake="challenge")
    path = f"/v1/endpoints/{found['id']}"
    changed = manager.patch(path, {**change, "enabled": False}).json()
    assert [changed[name] for name in STATUS] == [False, "request", None, None]
    [(type, event)] = announced(1)
    assert (type, event["reason"]) == ("endpoint.changed", "request")
    rows(SQL["verified"].replace("%(id)s", "%s").replace("%(allowed_rate)s", "60"), found["id"])
    shown = manager.get(path).json()
    assert (shown["enabled"], shown["reason"], shown["allowed_rate"]) == (False, "request", 60)
    assert manager.patch(path, {"enabled": True}).json()["enabled"] is True


def test_a_deleted_endpoint_is_not_verified() -> None:
    manager, them = world(), caller_with("listen:*", client_name="them")
    mine = new_endpoint(manager, handshake="challenge")
    theirs = new_endpoint(them, handshake="challenge")
    assert manager.delete(f"/v1/endpoints/{mine['id']}").status_code == 204
    left = "SELECT endpoint_id FROM endpoint_verifications"
    assert rows(left) == [(theirs["id"],)]
    assert manager.delete("/v1/clients/them").status_code == 204
    assert rows(left) == []
