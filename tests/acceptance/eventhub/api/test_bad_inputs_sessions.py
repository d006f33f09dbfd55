"""Bad input of the routes of sessions and session groups, and of requests through sessions."""

from typing import Any

import pytest

from tests.acceptance.bad_inputs import EMIT, EVENT, Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
SESSIONS, GROUPS = "/v1/sessions", "/v1/session-groups"
SESSION, GROUP = f"{SESSIONS}/{{session}}", f"{GROUPS}/{{session_group}}"
PULL = f"{SESSION}/pull"
REGISTRATIONS = "/v1/registrations"
HEADER = "EventHub-Session"
EVENTS = "/v1/streams/orders/events"


def bad(name: str, route: str, path: str, outcome: str, at: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    return Bad(name, route, path, int(status), code, {"field": at} if at else {}, **more)


def create(case: str, outcome: str, at: str, /, *, key: str = "admin", **fields: Any) -> Bad:
    body = {"name": "new", "kind": "consumer", **fields}
    body = {name: value for name, value in body.items() if value != ""}
    return bad(case, f"POST {SESSIONS}", SESSIONS, outcome, at, body=body, key=key)


def change(case: str, outcome: str, at: str, /, *, mark: str = "<session>", **fields: Any) -> Bad:
    return bad(case, f"PATCH {SESSION}", f"{SESSIONS}/{mark}", outcome, at, body=fields)


def group(case: str, outcome: str, at: str, /, *, key: str = "admin", **fields: Any) -> Bad:
    return bad(case, f"POST {GROUPS}", GROUPS, outcome, at, body=fields, key=key)


def acknowledge(case: str, outcome: str, at: str, /, body: Any, **more: Any) -> Bad:
    name = more.pop("name", "session")
    path = f"{SESSIONS}/{name}/acknowledgements"
    return bad(case, f"POST {SESSION}/acknowledgements", path, outcome, at, body=body, **more)


def register(case: str, outcome: str, at: str, /, **fields: Any) -> Bad:
    body = {"streams": ["orders"], **fields}
    return bad(case, f"POST {REGISTRATIONS}", REGISTRATIONS, outcome, at, body=body)


def pull(name: str, outcome: str, at: str = "", /, *, session: str = "session", **more: Any) -> Bad:
    """Return a pull that is refused; `body` has its fields."""
    body = more.pop("body", {})
    return bad(name, f"POST {PULL}", f"{SESSIONS}/{session}/pull", outcome, at, body=body, **more)


def events(
    name: str, outcome: str, at: str = "", /, *, session: str = "session", **more: Any
) -> Bad:
    """Return a request for the events of a session that is refused; `query` ends its path."""
    path = f"{SESSIONS}/{session}/events{more.pop('query', '')}"
    return bad(name, f"GET {SESSION}/events", path, outcome, at, **more)


def through(session: str, route: str, path: str, outcome: str, at: str, **more: Any) -> Bad:
    headers = {HEADER: session}
    return bad(f"through {session}", route, path, outcome, at, headers=headers, **more)


TYPE = {"domain": "shop", "type": "order.placed"}
ORDERS = {"stream": "orders", "sequences": [1]}
CASES = (
    pull("no key", "401 unauthenticated", key=""),
    pull("wrong key", "401 invalid_credentials", key="wrong"),
    pull("no session", "404 unknown_session", "session", session="nowhere"),
    pull("another client's", "404 unknown_session", "session", session="theirsession"),
    pull("a supplier's", "403 wrong_session_kind", "session", session="supplier"),
    *(pull(f"session {name}", "404 unknown_session", "session", session=name)
      for name in ("0", "9" * 30, "<theirsession>")),
    pull("no name", "400 invalid_name", "session", session="a%20b"),
    pull("acknowledges elsewhere", "404 stream_of_no_registration", "acknowledgements.0.stream",
         body={"acknowledgements": [{**ORDERS, "stream": "refunds"}]}),
    pull("visible elsewhere", "404 stream_of_no_registration", "visibility.0.stream",
         body={"visibility": [{**ORDERS, "stream": "refunds", "visibility_s": 5}]}),
    pull("a list", "400 invalid_field", body=[]),
    pull("no JSON", "400 malformed_json", body=b"{"),
    pull("text", "415 unsupported_media_type", headers={"Content-Type": "text/plain"}),
    pull("pictures", "406 not_acceptable", "accept", headers={"Accept": "image/png"}),
    pull("a field", "400 unknown_field", "colour", body={"colour": "red"}),
    *(pull(f"{name} {value!r}", "400 invalid_field", name, body={name: value})
      for name, value in (("max", -1), ("max", 1_001), ("max", "9"), ("wait_s", 61), ("wait_s", -1),
                          ("visibility_s", 0), ("visibility_s", 43_201), ("acknowledgements", {}))),
    pull("acknowledges nothing", "400 missing_field", "acknowledgements.0.sequence",
         body={"acknowledgements": [{"stream": "orders"}]}),
    pull("acknowledges in no stream", "400 missing_field", "acknowledgements.0.stream",
         body={"acknowledgements": [{"sequence": 1}]}),
    pull("visible for no time", "400 missing_field", "visibility.0.visibility_s",
         body={"visibility": [ORDERS]}),
    pull("visible too long", "400 invalid_field", "visibility.0.visibility_s",
         body={"visibility": [{**ORDERS, "visibility_s": 43_201}]}),
    events("no key", "401 unauthenticated", key=""),
    events("wrong key", "401 invalid_credentials", key="wrong"),
    events("no session", "404 unknown_session", "session", session="nowhere"),
    events("another client's", "404 unknown_session", "session", session="theirsession"),
    events("a supplier's", "403 wrong_session_kind", "session", session="supplier"),
    events("session 0", "404 unknown_session", "session", session="0"),
    events("no name", "400 invalid_name", "session", session="a%20b"),
    events("a page", "406 not_acceptable", "accept", headers={"Accept": "application/json"}),
    events("a cursor", "400 unknown_field", "from", query="?from=now"),
    events("through a supplier", "403 wrong_session_kind", HEADER, headers={HEADER: "supplier"}),
    create("no name", "400 missing_field", "name", name=""),
    create("name no name", "400 invalid_name", "name", name="a b"),
    create("name a number", "400 invalid_field", "name", name="12"),
    create("no kind", "400 missing_field", "kind", kind=""),
    create("kind unknown", "400 invalid_field", "kind", kind="reader"),
    create("taken", "409 session_exists", "name", name="session"),
    create("no such group", "404 unknown_session_group", "group", group="nowhere"),
    create("no such client", "404 not_found", "client", client="nobody"),
    create("another client", "403 forbidden", "", key="listener", client="them"),
    create("no client", "400 missing_field", "client", key="operator"),
    create("a supplier of nothing", "400 missing_field", "supplies", kind="supplier"),
    create("a consumer that supplies", "400 invalid_field", "supplies", supplies=[TYPE]),
    *(create(f"{kind} with {name}", "400 invalid_field", name, kind=kind, **{name: value}, **more)
      for kind, more in (("admin", {}), ("supplier", {"supplies": [TYPE]}))
      for name, value in (("window", 5), ("order", "fifo"), ("group", "team"),
                          ("disconnected", True), ("quality", "reliable"))),
    create("a suspended admin", "400 invalid_field", "suspended", kind="admin", suspended=True),
    *(create(f"supplies {at}", outcome, at, kind="supplier", supplies=supplies)
      for outcome, at, supplies in (
          ("400 invalid_field", "supplies", []), ("400 field_too_long", "supplies", [TYPE] * 101),
          ("400 missing_field", "supplies.0.type", [{"domain": "shop"}]),
          ("400 unknown_field", "supplies.0.name", [{**TYPE, "name": "a"}]),
          ("400 invalid_field", "supplies.1.type", [TYPE, {"domain": "shop", "type": "a*"}]))),
    *(change(f"{name} {value!r}", "400 invalid_field", name, **{name: value})
      for name, value in (("window", 0), ("window", 10_001), ("window", "5"), ("order", "random"),
                          ("attempts_max", 0), ("attempts_max", 1_001), ("attempts_max", "5"),
                          ("quality", "good"), ("suspended", None), ("disconnected", 1))),
    *(change(f"options {at}", outcome, f"order_options.{at}", order_options=options)
      for outcome, at, options in (
          ("400 invalid_field", "hold_ms", {"hold_ms": -1}),
          ("400 invalid_field", "occur_delay_ms", {"occur_delay_ms": 60_001}),
          ("400 unknown_field", "delay", {"delay": 1}),
          ("400 invalid_name", "suppliers.0", {"suppliers": ["a b"]}))),
    change("the name", "400 unknown_field", "name", name="other"),
    change("the kind", "400 unknown_field", "kind", kind="admin"),
    change("no such group", "404 unknown_session_group", "group", group="nowhere"),
    change("a supplier's window", "400 invalid_field", "window", mark="<supplier>", window=5),
    *(bad(f"session {number}", f"{method} {SESSION}", f"{SESSIONS}/{number}", "404 unknown_session",
          "session", body={} if method == "PATCH" else None, key=key)
      for method in ("GET", "PATCH", "DELETE")
      for number, key in (("0", "admin"), ("9" * 30, "admin"), ("<theirsession>", "listener"),
                          ("a%20b", "admin"), ("session", "operator"))),
    *(bad(f"query {query}", f"GET {SESSIONS}", f"{SESSIONS}?{query}", outcome, query.split("=")[0])
      for query, outcome in (("kind=x", "400 invalid_field"), ("name=a%20b", "400 invalid_name"),
                             ("group=a%20b", "400 invalid_name"), ("limit=0", "400 invalid_field"),
                             ("client=nobody", "404 not_found"), ("x=1", "400 unknown_field"))),
    *(bad(f"positions of {number}", f"GET {SESSION}/positions", f"{SESSIONS}/{number}/positions",
          "404 unknown_session", "session", key=key)
      for number, key in (("0", "admin"), ("x", "admin"), ("<theirsession>", "listener"))),
    *(bad(f"{what} of group {number}", f"GET {GROUP}/{what}", f"{GROUPS}/{number}/{what}",
          "404 unknown_session_group", "session_group", key=key)
      for what in ("positions", "claims")
      for number, key in (("0", "admin"), ("x", "admin"), ("<theirsessiongroup>", "listener"))),
    *(bad(f"claims of {number}", f"GET {SESSION}/claims", f"{SESSIONS}/{number}/claims",
          "404 unknown_session", "session", key=key)
      for number, key in (("0", "admin"), ("x", "admin"), ("<theirsession>", "listener"))),
    *(bad(f"{what} by client", f"GET {route}/{what}", f"{path}/{what}?client=a",
          "400 unknown_field", "client")
      for what in ("positions", "claims")
      for route, path in ((SESSION, f"{SESSIONS}/<session>"), (GROUP, f"{GROUPS}/<sessiongroup>"))),
    *(bad(f"claims {query}", f"GET {SESSION}/claims", f"{SESSIONS}/<session>/claims?{query}",
          "400 invalid_field", query.split("=")[0])
      for query in ("limit=0", "limit=1001", "after=x")),
    group("no name", "400 missing_field", "name"),
    group("name a number", "400 invalid_field", "name", name="12"),
    group("taken", "409 session_group_exists", "name", name="team"),
    group("taken by another client", "409 session_group_exists", "name", name="theirs"),
    group("supplies", "400 unknown_field", "supplies", name="a", supplies=[]),
    group("another client", "403 forbidden", "", key="listener", name="a", client="them"),
    *(group(f"{at} {fields}", "400 invalid_field", at, name="a", **fields)
      for at, fields in (
          ("sharing", {"sharing": "two"}), ("sharing", {"sharing": None}),
          ("sharing", {"sharing": True}), ("share_by", {"sharing": "one", "share_by": 1}),
          ("share_by", {"sharing": "one", "share_by": "@colour"}),
          ("share_by", {"share_by": "a"}),
          ("share_by", {"sharing": "every", "share_by": "a"}),
          ("quality", {"sharing": "one", "quality": "best_effort"}),
          ("order", {"sharing": "one", "share_by": "a", "order": "priority"}),
          ("attempts_max", {"attempts_max": 0}), ("attempts_max", {"attempts_max": 1.5}))),
    *(bad(f"{name} changed", f"PATCH {GROUP}", f"{GROUPS}/<sessiongroup>", "400 unknown_field",
          name, body={name: value})
      for name, value in (("sharing", "one"), ("share_by", "a"))),
    bad("in use", f"DELETE {GROUP}", f"{GROUPS}/<sessiongroup>", "409 session_group_in_use",
        "session_group"),
    *(bad(f"group {number}", f"{method} {GROUP}", f"{GROUPS}/{number}",
          "404 unknown_session_group", "session_group", body={} if method == "PATCH" else None,
          key=key)
      for method in ("GET", "PATCH", "DELETE")
      for number, key in (("0", "admin"), ("x", "admin"), ("<theirsessiongroup>", "listener"))),
    bad("changed", f"PATCH {GROUP}", f"{GROUPS}/<sessiongroup>", "412 changed",
        headers={"If-Match": "0"}, body={"window": 5}),
    register("two owners", "400 invalid_field", "session_group", session="session",
             session_group="team"),
    register("session a number", "400 invalid_field", "session", session=1),
    register("no such session", "404 unknown_session", "session", session="nobody"),
    register("another client's session", "404 unknown_session", "session", session="theirsession"),
    register("a supplier", "400 invalid_field", "session", session="supplier"),
    register("no such session group", "404 unknown_session_group", "session_group",
             session_group="nowhere"),
    register("another owner's group", "409 other_owner", "group", session="session", group="used"),
    bad("two owners", "POST /v1/registration-groups", "/v1/registration-groups",
        "400 invalid_field", "session_group",
        body={"name": "a", "session": "session", "session_group": "team"}),
    bad("no such session", "POST /v1/registration-groups", "/v1/registration-groups",
        "404 unknown_session", "session", body={"name": "a", "session": "nobody"}),
    bad("the owner", "PATCH /v1/registrations/{registration}", f"{REGISTRATIONS}/<registration>",
        "400 unknown_field", "session", body={"session": "session"}),
    through("nobody", f"GET {SESSIONS}", SESSIONS, "404 unknown_session", HEADER),
    through("a b", f"GET {SESSIONS}", SESSIONS, "400 invalid_name", HEADER),
    through("session", f"GET {SESSIONS}", SESSIONS, "400 invalid_field", HEADER, key="operator"),
    through("session", f"POST {SESSIONS}", SESSIONS, "403 wrong_session_kind", HEADER,
            body={"name": "a", "kind": "admin"}),
    through("nobody", EMIT, EVENTS, "404 unknown_session", HEADER, body=EVENT),
    through("a b", EMIT, EVENTS, "400 invalid_name", HEADER, body=EVENT),
    through("session", EMIT, EVENTS, "403 wrong_session_kind", HEADER, body=EVENT),
    through("supplier", f"POST {REGISTRATIONS}", REGISTRATIONS, "403 wrong_session_kind", HEADER,
            body={"streams": ["orders"]}),
    through("adminsession", "GET /v1/streams/{stream}/events", f"{EVENTS}?from=oldest",
            "403 wrong_session_kind", HEADER),
    bad("through nobody", "POST /v1/registrations/bulk", f"{REGISTRATIONS}/bulk",
        "404 unknown_session", HEADER, body=b"{}\n",
        headers={HEADER: "nobody", "Content-Type": "application/x-ndjson"}),
    acknowledge("no JSON", "400 malformed_json", "", b"{"),
    acknowledge("a form", "415 unsupported_media_type", "", b"a=1",
                headers={"Content-Type": "application/x-www-form-urlencoded"}),
    acknowledge("nothing", "400 missing_field", "streams", {}),
    acknowledge("no streams", "400 invalid_field", "streams", {"streams": []}),
    acknowledge("no stream", "400 missing_field", "streams.0.stream",
                {"streams": [{"sequence": 1}]}),
    acknowledge("neither", "400 missing_field", "streams.0.sequence",
                {"streams": [{"stream": "orders"}]}),
    acknowledge("negative", "400 invalid_field", "streams.0.sequence",
                {"streams": [{"stream": "orders", "sequence": -1}]}),
    acknowledge("a text", "400 invalid_field", "streams.0.sequences.0",
                {"streams": [{"stream": "orders", "sequences": ["1"]}]}),
    acknowledge("a nak of a text", "400 invalid_field", "streams.0.nak.0",
                {"streams": [{"stream": "orders", "nak": ["1"]}]}),
    acknowledge("unknown field", "400 unknown_field", "streams.0.listener",
                {"streams": [{"stream": "orders", "sequence": 1, "listener": "a"}]}),
    acknowledge("too many streams", "400 field_too_long", "streams",
                {"streams": [{"stream": "orders", "sequence": 1}] * 101}),
    acknowledge("another stream", "404 stream_of_no_registration", "streams.0.stream",
                {"streams": [{"stream": "nothing", "sequence": 1}]}),
    acknowledge("nobody", "404 unknown_session", "session",
                {"streams": [{"stream": "orders", "sequence": 1}]}, name="nobody"),
    acknowledge("a supplier", "403 wrong_session_kind", "session",
                {"streams": [{"stream": "orders", "sequence": 1}]}, name="supplier"),
    acknowledge("through a supplier", "403 wrong_session_kind", HEADER,
                {"streams": [{"stream": "orders", "sequence": 1}]}, headers={HEADER: "supplier"}),
    Bad("suspended", EMIT, EVENTS, 409, "session_suspended", {"index": 0}, EVENT,
        headers={HEADER: "suspended"}),
    Bad("not supplied", EMIT, EVENTS, 422, "type_not_supplied", {"index": 1, "field": "type"},
        [EVENT, {"domain": "shop", "type": "other"}], headers={HEADER: "supplier"}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_about_sessions_is_refused_with_its_place(world: World, case: Bad) -> None:
    world.check(case)
