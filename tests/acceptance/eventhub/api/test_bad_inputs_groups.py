"""Bad input of the routes of registration groups and many registrations at once, and in what of a
registration belongs to its life: its key, its group, what it reports, whether it is suspended.
"""

from typing import Any

import pytest

from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
REGISTRATIONS = "/v1/registrations"
CHANGE = f"PATCH {REGISTRATIONS}/{{registration}}"
GROUPS = "/v1/registration-groups"
GROUP = f"{GROUPS}/{{group}}"
BULK = f"{REGISTRATIONS}/bulk"
LINES = {"Content-Type": "application/x-ndjson"}


def bad(name: str, route: str, path: str, outcome: str, at: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    return Bad(name, route, path, int(status), code, {"field": at} if at else {}, **more)


def register(name: str, outcome: str, at: str, **fields: Any) -> Bad:
    body = {"streams": ["orders"], **fields}
    return bad(name, f"POST {REGISTRATIONS}", REGISTRATIONS, outcome, at, body=body)


def change(name: str, outcome: str, at: str, **fields: Any) -> Bad:
    return bad(name, CHANGE, f"{REGISTRATIONS}/<registration>", outcome, at, body=fields)


def group(case: str, outcome: str, at: str, *, key: str = "admin", **fields: Any) -> Bad:
    return bad(case, f"POST {GROUPS}", GROUPS, outcome, at, body=fields, key=key)


def bulk(name: str, outcome: str, at: str = "", *, query: str = "", **more: Any) -> Bad:
    more.setdefault("headers", LINES)
    more.setdefault("body", b"{}\n")
    return bad(name, f"POST {BULK}", BULK + query, outcome, at, **more)


CASES = (
    *(register(f"key {value!r}", "400 invalid_field", "key", key=value)
      for value in (1, "", "a\0b", ["k"])),
    register("key too long", "400 field_too_long", "key", key="x" * 201),
    register("key taken", "409 key_taken", "key", key="taken"),
    register("suspended a text", "400 invalid_field", "suspended", suspended="true"),
    register("suspended null", "400 invalid_field", "suspended", suspended=None),
    register("group a number", "400 invalid_field", "group", group=7),
    register("group no name", "400 invalid_name", "group", group="a b"),
    register("no such group", "404 unknown_group", "group", group="nowhere"),
    register("another client's group", "404 unknown_group", "group", group="theirs"),
    register("report a text", "400 invalid_field", "report", report="user"),
    change("suspended a number", "400 invalid_field", "suspended", suspended=1),
    change("no such group", "404 unknown_group", "group", group="nowhere"),
    change("the key", "400 unknown_field", "key", key="other"),
    change("report a number", "400 invalid_field", "report", report=7),
    *(bad(f"query {query}", f"GET {REGISTRATIONS}", f"{REGISTRATIONS}?{query}", outcome,
          query.split("=")[0])
      for query, outcome in (("suspended=1", "400 invalid_field"), ("key=", "400 invalid_field"),
                             ("group=a%20b", "400 invalid_name"))),
    group("no name", "400 missing_field", "name"),
    group("name no name", "400 invalid_name", "name", name="a b"),
    group("name a number", "400 invalid_field", "name", name=1),
    group("suspended a text", "400 invalid_field", "suspended", name="a", suspended="no"),
    group("unknown field", "400 unknown_field", "registrations", name="a", registrations=[]),
    group("there is one", "409 group_exists", "name", name="used"),
    group("no such client", "404 not_found", "client", name="a", client="nobody"),
    group("another client", "403 forbidden", "", key="listener", name="a", client="them"),
    group("no client", "400 missing_field", "client", key="operator", name="a"),
    group("an emitter", "403 forbidden", "", key="emitter", name="a"),
    bad("suspended null", f"PATCH {GROUP}", f"{GROUPS}/<group>", "400 invalid_field", "suspended",
        body={"suspended": None}),
    bad("the name", f"PATCH {GROUP}", f"{GROUPS}/<group>", "400 unknown_field", "name",
        body={"name": "other"}),
    bad("in use", f"DELETE {GROUP}", f"{GROUPS}/<group>", "409 group_in_use", "group"),
    *(bad(f"group {number}", f"{method} {GROUP}", f"{GROUPS}/{number}", "404 unknown_group",
          "group", body={} if method == "PATCH" else None, key=key)
      for method in ("GET", "PATCH", "DELETE")
      for number, key in (("0", "admin"), ("9" * 30, "admin"), ("x", "admin"),
                          ("<theirgroup>", "listener"))),
    *(bad(f"query {query}", f"GET {GROUPS}", f"{GROUPS}?{query}", outcome, query.split("=")[0])
      for query, outcome in (("limit=0", "400 invalid_field"), ("after=x", "400 invalid_field"),
                             ("client=nobody", "404 not_found"), ("name=x", "400 unknown_field"))),
    bulk("no key", "401 unauthenticated", key=""),
    *(bulk(f"{name} key", "401 invalid_credentials", key=name)
      for name in ("wrong", "revoked", "expired", "token")),
    bulk("JSON", "415 unsupported_media_type", headers={}),
    bulk("compressed", "415 unsupported_media_type",
         headers={**LINES, "Content-Encoding": "gzip"}),
    bulk("query", "400 unknown_field", "x", query="?x=1"),
    bulk("ids", "400 invalid_field", "ids", query="?ids=1"),
    bulk("client no name", "400 invalid_name", "client", query="?client=a%20b"),
    bulk("no such client", "404 not_found", "client", query="?client=nobody"),
    bulk("another client", "403 forbidden", query="?client=them", key="listener"),
    bulk("an action", "400 invalid_field", "EventHub-Action",
         headers={**LINES, "EventHub-Action": "x" * 300}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_of_life_is_refused_with_its_place(world: World, case: Bad) -> None:
    world.check(case)
