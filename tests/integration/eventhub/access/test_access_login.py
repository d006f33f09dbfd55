"""Operators: login, CSRF, zones by query, throttling; and the demo's credentials."""

import stat
from pathlib import Path
from typing import Any, ClassVar

import jwt
import pytest
from django.conf import settings
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client as HttpClient

from eventhub.access.models import ApiKey, Channel, LoginAttempts
from eventhub.access.tokens import LoginClaims, read_token
from eventhub.accounts.services import ensure_demo
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from tests.integration.access_world import ApiCaller, caller_with, key, public_id, refused, zone

pytestmark = pytest.mark.django_db
LOGIN = {"username": "olga", "password": "a long password"}


@pytest.fixture(autouse=True)
def fast_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def operator() -> ApiCaller:
    User.objects.create_superuser(LOGIN["username"], password=LOGIN["password"])
    return ApiCaller(http=HttpClient(enforce_csrf_checks=True))


def log_in(browser: ApiCaller) -> dict[str, str]:
    """Return the headers that a logged-in browser's page sends with a write."""
    response = browser.post("/v1/session", LOGIN)
    assert response.status_code == 200
    return {"X-CSRFToken": response.json()["csrf_token"]}


def test_an_operator_logs_in_acts_in_any_zone_and_logs_out(operator: ApiCaller) -> None:
    refused(operator.get("/v1/session"), 401, "unauthenticated")
    headers = log_in(operator)
    assert operator.get("/v1/session").json()["username"] == "olga"
    assert operator.post("/v1/zones", {"name": "plant"}, headers=headers).status_code == 201
    refused(operator.post("/v1/zones", {"name": "plant"}, headers=headers), 409, "conflict")
    names = [item["name"] for item in operator.get("/v1/zones").json()["items"]]
    assert names == ["default", "plant"]
    made = operator.post("/v1/clients?zone=plant", {"name": "robot"}, headers=headers)
    assert made.status_code == 201
    assert operator.get("/v1/clients/robot?zone=plant").status_code == 200
    refused(operator.get("/v1/clients/robot"), 404, "not_found")
    refused(operator.get("/v1/clients?zone=nowhere"), 404, "not_found")
    assert operator.put("/v1/streams/lines?zone=plant", {}, headers=headers).status_code == 201
    assert operator.delete("/v1/session", headers=headers).status_code == 204
    refused(operator.get("/v1/zones"), 401, "unauthenticated")


def test_an_operators_token_names_the_zone_and_the_login_and_no_secret(operator: ApiCaller) -> None:
    headers = log_in(operator)
    plant = zone("plant")
    minted = operator.post("/v1/connection-tokens?zone=plant", {"lifetime_s": 30}, headers=headers)
    assert minted.status_code == 201
    token = minted.json()["token"]
    claims = read_token(settings.SECRET_KEY, token, SystemClock())
    assert isinstance(claims, LoginClaims)
    assert (claims.user_id, claims.zone_id) == (User.objects.get().pk, plant.pk)
    payload = jwt.decode(token, options={"verify_signature": False})
    cookie = operator.http.cookies["sessionid"].value
    assert cookie not in str(payload)
    refused(ApiCaller(token).get("/v1/streams"), 401, "invalid_credentials")  # not for management


@pytest.mark.parametrize("grant", ["emit:orders", "emit:*"])
def test_an_operators_token_is_for_reading(operator: ApiCaller, grant: str) -> None:
    headers = log_in(operator)
    action, streams = grant.split(":")
    body = {"grants": [{"action": action, "streams": streams}]}
    problem = refused(
        operator.post("/v1/connection-tokens", body, headers=headers), 403, "wider_grant"
    )
    assert problem["position"] == {"field": "grants.0"}


def test_an_operators_token_needs_csrf_and_a_zone_that_exists(operator: ApiCaller) -> None:
    headers = log_in(operator)
    refused(operator.post("/v1/connection-tokens", {}), 403, "csrf_failed")
    nowhere = operator.post("/v1/connection-tokens?zone=nowhere", {}, headers=headers)
    refused(nowhere, 404, "not_found")


def test_a_write_without_the_csrf_token_is_refused(operator: ApiCaller) -> None:
    log_in(operator)
    refused(operator.post("/v1/zones", {"name": "plant"}), 403, "csrf_failed")
    refused(operator.delete("/v1/session"), 403, "csrf_failed")
    assert operator.get("/v1/zones").status_code == 200


def test_a_wrong_password_is_refused_and_says_nothing_of_the_username(operator: ApiCaller) -> None:
    wrong = operator.post("/v1/session", {**LOGIN, "password": "b"})
    unknown = operator.post("/v1/session", {**LOGIN, "username": "nobody"})
    assert wrong.content == unknown.content
    refused(wrong, 401, "invalid_login")


def test_a_user_who_is_no_operator_may_not_log_in() -> None:
    User.objects.create_user("guest", password="a long password")
    response = ApiCaller().post("/v1/session", {"username": "guest", "password": "a long password"})
    refused(response, 401, "invalid_login")


def test_an_operator_who_is_dismissed_is_out_at_once(operator: ApiCaller) -> None:
    log_in(operator)
    User.objects.update(is_staff=False)
    refused(operator.get("/v1/zones"), 401, "unauthenticated")


def test_guessing_is_slowed_down_and_ends_with_the_window(operator: ApiCaller) -> None:
    for _ in range(limits.LOGIN_ATTEMPTS_PER_USER_MAX):
        refused(operator.post("/v1/session", {**LOGIN, "password": "b"}), 401, "invalid_login")
    response = operator.post("/v1/session", LOGIN)
    refused(response, 429, "too_many_requests")
    assert int(response["Retry-After"]) == limits.LOGIN_WINDOW_S
    for attempts in LoginAttempts.objects.all():
        attempts.started_at = attempts.started_at.replace(year=2020)
        attempts.save()
    log_in(operator)


def test_a_hostile_session_cookie_is_nobody(operator: ApiCaller) -> None:
    for cookie in ('"abcdefgh\\000xyz"', "x" * 5000, "abc", "é" * 20, "' OR 1=1 --------"):
        browser = ApiCaller()
        headers = {"Cookie": f"sessionid={cookie}"}
        refused(browser.get("/v1/zones", headers=headers), 401, "unauthenticated")
        response = browser.post("/v1/session", LOGIN, headers=headers)
        assert response.status_code in (200, 400, 401), response.content


def test_the_demo_is_made_once_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "data" / "credentials.json"
    made = ensure_demo(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ensure_demo(file) == made
    assert ApiCaller(made.key).get("/v1/clients").status_code == 200
    streams = [item["name"] for item in ApiCaller(made.key).get("/v1/streams").json()["items"]]
    assert streams == ["github", "host", "system"]
    assert Channel.objects.get(name="memory").bit == 2
    login = {"username": made.username, "password": made.password}
    assert ApiCaller().post("/v1/session", login).status_code == 200
    assert ApiKey.objects.count() == 1


class HashingWhere(MD5PasswordHasher):
    """Notes in how many transactions, of which the test's is one, a password is hashed."""

    depths: ClassVar[list[int]] = []

    def encode(self, password: str, salt: str) -> str:
        self.depths.append(len(connection.atomic_blocks))
        return str(super().encode(password, salt))


def test_no_transaction_waits_while_the_demos_password_is_hashed(
    tmp_path: Path, settings: Any
) -> None:
    """On a busy machine that takes longer than a transaction may idle: the server ended it, and
    `make run` failed. A lost file means another password."""
    settings.PASSWORD_HASHERS = [f"{__name__}.HashingWhere"]
    HashingWhere.depths.clear()
    file = tmp_path / "credentials.json"
    ensure_demo(file)
    file.unlink()
    ensure_demo(file)
    assert set(HashingWhere.depths) == {len(connection.atomic_blocks)}


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"operator":{},"client":{}}', b"\xff"])
def test_a_damaged_or_lost_demo_file_is_created_again(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "credentials.json"
    first = ensure_demo(file)
    file.write_bytes(damage)
    second = ensure_demo(file)
    assert second.password != first.password
    login = {"username": second.username, "password": second.password}
    assert ApiCaller().post("/v1/session", login).status_code == 200
    assert ApiCaller(second.key).get("/v1/clients").status_code == 200


def test_a_revoked_demo_key_is_replaced_and_the_password_stays(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    first = ensure_demo(file)
    ApiCaller(first.key).delete(f"/v1/keys/{public_id(first.key)}")
    second = ensure_demo(file)
    assert second.password == first.password
    assert second.key != first.key
    assert ApiCaller(second.key).get("/v1/clients").status_code == 200


def test_createkey_prints_a_key_that_works(capsys: pytest.CaptureFixture[str]) -> None:
    zone("plant")
    call_command("createkey", "robot", "--zone", "plant", "--grant", "manage:*")
    text = capsys.readouterr().out.strip()
    assert ApiCaller(text).get("/v1/clients").json()["items"][0]["name"] == "robot"
    for wrong in (["a b"], ["x", "--zone", "nowhere"], ["x", "--grant", "fly:*"]):
        with pytest.raises(CommandError):
            call_command("createkey", *wrong)


def test_a_key_does_not_become_an_operator_by_naming_one(operator: ApiCaller) -> None:
    log_in(operator)
    operator.key = key("listen:*")
    refused(operator.get("/v1/zones"), 403, "forbidden")
    refused(caller_with("manage:*").get("/v1/zones"), 403, "forbidden")
