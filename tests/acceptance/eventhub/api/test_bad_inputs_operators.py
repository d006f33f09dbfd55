"""Bad input about operators and their passwords, and about the addresses of keys."""

import pytest

from tests.acceptance.bad_inputs import Bad, World
from tests.acceptance.eventhub.api.test_bad_inputs_management import KEYS, bad

pytestmark = pytest.mark.usefixtures("untouched")
ONE_OPERATOR = "/v1/operators/{operator}"
NEW = {"name": "eve", "role": "viewer"}
CASES = (
    bad("not an operator", "GET /v1/operators", "/v1/operators", "403 forbidden"),
    bad("not an operator", "POST /v1/operators", "/v1/operators", "403 forbidden", body=NEW),
    *(bad(name, "POST /v1/operators", "/v1/operators", outcome, at, key="operator", body=body)
      for name, outcome, at, body in (
          ("taken", "409 conflict", "name", {**NEW, "name": "operator"}),
          ("no name", "400 invalid_field", "name", {**NEW, "name": "a b"}),
          ("NUL", "400 invalid_field", "name", {**NEW, "name": "a\0"}),
          ("long", "400 field_too_long", "name", {**NEW, "name": "a" * 151}),
          ("no role", "400 missing_field", "role", {"name": "eve"}),
          ("another role", "400 invalid_field", "role", {**NEW, "role": "root"}),
          ("short", "400 invalid_field", "password", {**NEW, "password": "x"}),
          ("common", "400 invalid_field", "password", {**NEW, "password": "password1"}))),
    *(bad("nobody", f"{method} {ONE_OPERATOR}{after}", f"/v1/operators/nobody{after}",
          "404 not_found", "operator", key="operator", body=body)
      for method, after, body in (
          ("GET", "", None), ("PATCH", "", {}), ("DELETE", "", None),
          ("POST", "/setup-token", {}))),
    *(bad("last admin", f"{method} {ONE_OPERATOR}{after}", f"/v1/operators/operator{after}",
          "409 last_admin", key="operator", body=body)
      for method, after, body in (
          ("PATCH", "", {"role": "viewer"}), ("PATCH", "", {"active": False}),
          ("DELETE", "", None), ("POST", "/setup-token", {}))),
    bad("changed", f"DELETE {ONE_OPERATOR}", "/v1/operators/operator", "412 changed",
        key="operator", headers={"If-Match": "0"}),
    bad("no token", "POST /v1/session/setup", "/v1/session/setup", "401 invalid_setup_token",
        key="", body={"username": "operator", "setup_token": "x", "password": "x"}),
    bad("no operator", "POST /v1/session/setup", "/v1/session/setup", "401 invalid_setup_token",
        key="", body={"username": "nobody", "setup_token": "x", "password": "x"}),
    bad("a key", "POST /v1/session/password", "/v1/session/password", "403 forbidden",
        body={"password": "x", "new_password": "y"}),
    bad("wrong password", "POST /v1/session/password", "/v1/session/password",
        "400 invalid_field", "password", key="operator",
        body={"password": "x", "new_password": "four odd words here"}),
    bad("elsewhere", "GET /v1/clients", "/v1/clients", "403 address_not_allowed", key="elsewhere"),
    *(bad(name, f"{method} {route}", path, f"400 {code}", f"allowed_addresses{at}",
          body={"grants": [], "allowed_addresses": value})
      for method, route, path in (
          ("POST", "/v1/clients/{client}/keys", KEYS),
          ("PATCH", "/v1/keys/{public_id}", "/v1/keys/<key>"))
      for name, code, at, value in (
          ("no address", "invalid_field", "", []),
          ("no list", "invalid_field", "", "10.0.0.0/8"),
          ("bad address", "invalid_field", ".0", ["x"]),
          ("bad network", "invalid_field", ".0", ["10.0.0.1/8"]),
          ("many", "field_too_long", "", ["10.0.0.1"] * 65))),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_about_operators_is_refused_with_its_place(world: World, case: Bad) -> None:
    world.check(case)
