"""What each role of operators may do, over every route of the API."""

import re

import pytest

from tests.acceptance.documented import operations
from tests.acceptance.eventhub.api.test_bad_inputs_management import HOT
from tests.acceptance.operators import OperatorLogin, logged_in
from tests.live import LiveHub, LiveZone

# What is no GET and changes nothing, or only the caller's own login and password.
READS = frozenset(
    {
        *("POST /v1/filters/check", "POST /v1/filters/explain", "POST /v1/filters/dry-run"),
        *("POST /v1/replays/preview", "POST /v1/endpoints/{endpoint}/recover/preview"),
        *("POST /v1/patterns/check", "POST /v1/patterns/dry-run"),
        *("POST /v1/sources/{source}/test", "POST /v1/connectors/{connector}/test"),
        "POST /v1/streams/{stream}/interest",
    }
)
OWN = frozenset(
    {
        *("POST /v1/session", "DELETE /v1/session", "POST /v1/session/setup"),
        *("POST /v1/session/password", "POST /v1/connection-tokens"),
    }
)
KEYS_ONLY = frozenset({"POST /v1/registrations/bulk"})
OPEN = frozenset({"POST /v1/webhooks/{token}"})  # who has the URL is the caller
OF_ADMINS = frozenset(
    {
        *("GET /v1/operators", "POST /v1/operators", "GET /v1/operators/{operator}"),
        *("PATCH /v1/operators/{operator}", "DELETE /v1/operators/{operator}"),
        *("POST /v1/operators/{operator}/setup-token", "DELETE /v1/zones/{name}"),
        *("POST /v1/clients/{client}/keys", "PATCH /v1/keys/{public_id}"),
    }
)
ROUTES = sorted(f"{one.method} {one.route}" for one in operations() if "/v1/" in one.route)
WITHOUT_RIGHT = sorted(
    {route for route in ROUTES if not route.startswith("GET ")} - READS - OWN - KEYS_ONLY - OPEN
)


@pytest.fixture(scope="module")
def viewer(hub: LiveHub) -> OperatorLogin:
    return logged_in(hub, "viewer")


@pytest.fixture(scope="module")
def operator(hub: LiveHub) -> OperatorLogin:
    return logged_in(hub, "operator")


def send(login: OperatorLogin, route: str, token: str) -> tuple[int, str, str]:
    """Send a request about what does not exist, to a hot route with the token; return status, code
    and the role that is named.
    """
    method, path = re.sub(r"\{\w+\}", "1", route).split()
    body = None if method in ("GET", "DELETE") else {"colour": "red"}  # unknown everywhere
    if route in HOT:
        answer = login.hub.call(method, path, body, key=token)
    else:
        answer = login.call(method, path, body)
    problem = answer.json if answer.headers.get("content-type", "").endswith("+json") else {}
    return answer.status, problem.get("code", ""), problem.get("role", "")


def test_a_viewer_is_refused_by_every_route_that_changes_something(
    hub: LiveHub, viewer: OperatorLogin
) -> None:
    assert len(WITHOUT_RIGHT) > 50
    token = viewer.token("default")
    answers = {route: send(viewer, route, token) for route in WITHOUT_RIGHT}
    expected = {
        route: (403, "forbidden", "admin" if route in OF_ADMINS else "operator")
        for route in WITHOUT_RIGHT
    }
    assert answers == expected
    assert {route: send(viewer, route, token)[:2] for route in KEYS_ONLY} == dict.fromkeys(
        KEYS_ONLY, (401, "invalid_credentials")
    )


def test_a_viewer_reads_what_an_operator_reads(
    viewer: OperatorLogin, operator: OperatorLogin
) -> None:
    logins = [(login, login.token("default")) for login in (viewer, operator)]
    for route in (*(one for one in ROUTES if one.startswith("GET ")), *READS):
        if route in OF_ADMINS:
            refused = [send(login, route, token) for login, token in logins]
            assert refused == [(403, "forbidden", "admin")] * 2, route
        elif route != "GET /v1/ws":
            [seen, expected] = [send(login, route, token) for login, token in logins]
            assert seen == expected, route
            assert seen[0] not in (401, 403), (route, seen)


def test_an_operator_is_refused_only_what_admins_do(operator: OperatorLogin) -> None:
    token = operator.token("default")
    for route in OF_ADMINS:
        assert send(operator, route, token) == (403, "forbidden", "admin"), route
    for route in WITHOUT_RIGHT:
        if route not in OF_ADMINS and route != "POST /v1/streams/{stream}/events":
            status, code, role = send(operator, route, token)
            assert role == "", (route, status, code)


def test_an_operator_revokes_keys_and_manages_tenants(
    hub: LiveHub, zone: LiveZone, operator: OperatorLogin
) -> None:
    key = zone.key("listen:*", client="till")
    there = f"?zone={zone.name}"
    assert operator.call("DELETE", f"/v1/keys/{key.split('_')[1]}{there}").status == 204
    assert operator.call("PUT", f"/v1/streams/orders{there}", {}).status == 201
    assert operator.call("DELETE", f"/v1/clients/till{there}").status == 204
    name = f"{zone.name}-more"
    assert operator.call("POST", "/v1/zones", {"name": name}).status == 201


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_the_back_office_is_for_admins(hub: LiveHub, role: str) -> None:
    login = logged_in(hub, role)
    for path in ("/admin/", "/admin/auth/user/"):
        assert login.call("GET", path).refused(403, "forbidden")["role"] == "admin"
    assert logged_in(hub, "admin").call("GET", "/admin/auth/user/").status == 200
