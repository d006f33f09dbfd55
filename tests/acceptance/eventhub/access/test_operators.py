"""Operators: their roles, passwords and set-up tokens, and the end of their rights."""

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from tests.acceptance.eventhub.access.test_access import EFFECTIVE_S, MEASURED_S, closed
from tests.acceptance.operators import PASSWORD, OperatorLogin, create, log_in, logged_in, login_of
from tests.acceptance.wire import session
from tests.busy import stretched
from tests.live import OPERATOR, LiveHub, LiveZone

NEW = "sesame-" + secrets.token_urlsafe(9)


def test_an_admin_creates_changes_lists_and_deletes_operators(hub: LiveHub) -> None:
    made = create(hub, "viewer", name=f"eve+{secrets.token_hex(2)}@example.org")
    found = made.json
    path = f"/v1/operators/{found['name']}"
    assert (found["role"], found["active"], found["has_password"]) == ("viewer", True, True)
    assert (found["setup_token"], found["setup_expires_at"]) == (None, None)
    shown = hub.operate("GET", path)
    assert shown.headers["etag"] == f'"{found["changed"]}"' == made.headers["etag"]
    assert "setup_token" not in shown.json
    changed = hub.operate("PATCH", path, {"role": "operator"})
    assert (changed.status, changed.json["role"]) == (200, "operator")
    listed = hub.operate("GET", "/v1/operators?limit=1000").json["items"]
    assert [one for one in listed if one["name"] == found["name"]] == [changed.json]
    stale = {**hub.operator(), "If-Match": shown.headers["etag"]}
    hub.call("PATCH", path, {"active": False}, headers=stale).refused(412, "changed")
    assert hub.operate("DELETE", path).status == 204
    hub.operate("GET", path).refused(404, "not_found")
    hub.operate("DELETE", path).refused(404, "not_found")


def test_a_set_up_token_sets_one_password(hub: LiveHub) -> None:
    name = f"amy-{secrets.token_hex(4)}"
    made = hub.operate("POST", "/v1/operators", {"name": name, "role": "viewer"})
    assert made.headers["cache-control"] == "no-store"
    assert made.json["has_password"] is False
    body = {"username": name, "setup_token": made.json["setup_token"], "password": "12345678"}

    def set_up(**more: str) -> Any:
        hub.sql("DELETE FROM login_attempts")
        return hub.call("POST", "/v1/session/setup", {**body, **more})

    assert set_up().refused(400, "invalid_field")["position"] == {"field": "password"}
    set_up(setup_token="x", password=NEW).refused(401, "invalid_setup_token")
    set_up(username="nobody", password=NEW).refused(401, "invalid_setup_token")
    done = set_up(password=NEW)
    assert done.json["role"] == "viewer"
    assert login_of(hub, done).call("GET", "/v1/session").status == 200
    set_up(password=PASSWORD).refused(401, "invalid_setup_token")
    assert log_in(hub, name, NEW).status == 200


def test_a_new_set_up_token_ends_the_password_the_session_and_the_former_token(
    hub: LiveHub,
) -> None:
    login = logged_in(hub, "operator")
    path = f"/v1/operators/{login.name}/setup-token"
    first, second = (hub.operate("POST", path, {}).json["setup_token"] for _ in range(2))
    assert login.call("GET", "/v1/streams").status == 401
    assert log_in(hub, login.name).status == 401
    body = {"username": login.name, "password": NEW}
    hub.call("POST", "/v1/session/setup", {**body, "setup_token": first}).refused(
        401, "invalid_setup_token"
    )
    assert hub.call("POST", "/v1/session/setup", {**body, "setup_token": second}).status == 200


def test_an_operator_changes_its_own_password(hub: LiveHub) -> None:
    login = logged_in(hub, "viewer")
    other = login_of(hub, log_in(hub, login.name))

    def change(**body: str) -> Any:
        return login.call("POST", "/v1/session/password", body)

    wrong = change(password="x", new_password=NEW).refused(400, "invalid_field")
    assert wrong["position"] == {"field": "password"}
    short = change(password=PASSWORD, new_password="x").refused(400, "invalid_field")
    assert short["position"] == {"field": "new_password"}
    changed = change(password=PASSWORD, new_password=NEW)
    assert login_of(hub, changed).call("GET", "/v1/streams").status == 200
    assert other.call("GET", "/v1/streams").status == 401
    assert (log_in(hub, login.name).status, log_in(hub, login.name, NEW).status) == (401, 200)


def test_the_last_admin_stays(hub: LiveHub) -> None:
    path = f"/v1/operators/{OPERATOR}"
    for method, more, body in (
        ("DELETE", "", None),
        ("PATCH", "", {"role": "operator"}),
        ("PATCH", "", {"active": False}),
        ("POST", "/setup-token", {}),
    ):
        hub.sql("UPDATE auth_user SET is_superuser = false WHERE username <> %s", OPERATOR)
        waiting = hub.operate("POST", "/v1/operators", {"name": "waiting", "role": "admin"})
        assert waiting.status in (201, 409)  # it has no password, so it does not count
        hub.operate(method, path + more, body).refused(409, "last_admin")
    other = logged_in(hub, "admin")
    assert other.call("PATCH", path, {"active": True}).status == 200
    assert hub.operate("DELETE", f"/v1/operators/{other.name}").status == 204
    assert hub.operate("GET", "/v1/session").json["role"] == "admin"


def demoted(hub: LiveHub, name: str) -> int:
    return hub.operate("PATCH", f"/v1/operators/{name}", {"role": "viewer"}).status


def deactivated(hub: LiveHub, name: str) -> int:
    return hub.operate("PATCH", f"/v1/operators/{name}", {"active": False}).status


def deleted(hub: LiveHub, name: str) -> int:
    return hub.operate("DELETE", f"/v1/operators/{name}").status - 4


def reset(hub: LiveHub, name: str) -> int:
    return hub.operate("PATCH", f"/v1/operators/{name}", {"password": NEW}).status


def test_a_demoted_operator_loses_the_right_with_the_answer(hub: LiveHub) -> None:
    login = logged_in(hub, "admin")
    assert demoted(hub, login.name) == 200
    assert login.call("POST", "/v1/zones", {"name": "x"}).refused(403, "forbidden")["role"] == (
        "operator"
    )
    assert login.call("GET", "/v1/session").json["role"] == "viewer"


@pytest.mark.parametrize("end", [deactivated, deleted, reset])
async def test_a_session_and_a_socket_end_with_the_right(
    hub: LiveHub, zone: LiveZone, end: Callable[[LiveHub, str], int]
) -> None:
    zone.create_stream("orders")
    login: OperatorLogin = await asyncio.to_thread(logged_in, hub, "operator")
    token = login.token(zone.name)
    async with session(hub, token) as reader:
        await reader.listen("orders")
        ending = asyncio.create_task(closed(reader))
        assert await asyncio.to_thread(end, hub, login.name) == 200
        assert (await asyncio.to_thread(login.call, "GET", "/v1/streams")).status == 401
        async with asyncio.timeout(stretched(EFFECTIVE_S + MEASURED_S)):
            assert await ending == (4401, "invalid_credentials")
    with pytest.raises(InvalidStatus) as caught:
        async with session(hub, token):
            pass
    assert caught.value.response.status_code == 401


def test_changes_of_operators_are_announced_to_operators_only(hub: LiveHub, zone: LiveZone) -> None:
    name = f"ann-{secrets.token_hex(4)}"
    made = hub.operate("POST", "/v1/operators", {"name": name, "role": "viewer"})
    token = made.json["setup_token"]
    done = hub.call(
        "POST",
        "/v1/session/setup",
        {"username": name, "setup_token": token, "password": PASSWORD},
    )
    assert demoted(hub, name) == 200  # it is a viewer already: no event
    assert hub.operate("PATCH", f"/v1/operators/{name}", {"role": "admin"}).status == 200
    assert reset(hub, name) == 200
    assert hub.operate("DELETE", f"/v1/operators/{name}").status == 204
    path = f"/v1/audit?all_zones=true&resource=operator:{name}"
    acts = hub.operate("GET", path).json["items"][::-1]
    assert [act["type"].partition(".")[2] for act in acts] == [
        "created",
        "password_changed",
        "changed",
        "password_reset",
        "deleted",
    ]
    assert [act["by"]["operator"] for act in acts] == [OPERATOR, name, *[OPERATOR] * 3]
    assert acts[2]["attributes"] == {"operator": name, "role": "admin", "active": True}
    text = str(acts)
    assert not [secret for secret in (token, PASSWORD, NEW, "pbkdf2") if secret in text]
    assert done.status == 200
    for act in acts:
        for key in (zone.admin, zone.key("manage:*", "listen:*")):
            event = hub.call("GET", f"/v1/streams/system/events/{act['sequence']}", key=key)
            event.refused(404, "unknown_event")
            hub.call("GET", f"/v1/audit/{act['sequence']}", key=key).refused(404, "unknown_event")


def test_a_command_creates_an_operator(hub: LiveHub) -> None:
    name = f"cli-{secrets.token_hex(4)}"
    token = hub.manage("createoperator", name, "--role", "viewer").strip()
    body = {"username": name, "setup_token": token, "password": PASSWORD}
    assert hub.call("POST", "/v1/session/setup", body).json["role"] == "viewer"
    assert "exists" in hub.refuse("createoperator", name)
    assert "letters" in hub.refuse("createoperator", "a b")


def test_users_of_the_release_before_keep_their_rights(hub: LiveHub) -> None:
    """A superuser is an admin, a staff user an operator; any other may not log in, as before."""
    found = {}
    for staff, superuser in ((True, True), (True, False), (False, False), (False, True)):
        name = create(hub, "operator").json["name"]
        hub.sql(
            "UPDATE auth_user SET is_staff = %s, is_superuser = %s WHERE username = %s",
            *(staff, superuser, name),
        )
        answer = log_in(hub, name)
        found[staff, superuser] = answer.json.get("role", answer.status)
    assert found == {
        (True, True): "admin",
        (True, False): "operator",
        (False, False): 401,
        (False, True): 401,
    }
