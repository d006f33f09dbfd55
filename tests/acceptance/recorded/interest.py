"""Calls about registrations, filters and match indexes, and the ends of what was made."""

from typing import Any

from tests.acceptance.recorded.access import ACTION
from tests.acceptance.recorded.call import NEW, Call, gets, if_match, sends, sql
from tests.acceptance.recorded.endpoints import URL
from tests.acceptance.recorded.streams import EVENT, stream_id

PREDICATE = {"language": "predicate", "filter": '(and (> n 0) (= country "NO"))'}
WANTED: dict[str, Any] = {"streams": ["orders"]}
_DEEP = "(not " * 100 + "true" + ")" * 100
_LARGE = f'(= a "{"x" * 20_000}")'
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"domain": "shop", "type": "order.placed", "application": "till", "attributes": {"n": 1}},
    PREDICATE,
    {"language": "propositional", "filter": "(and country (or n total))"},
    {"language": "ready", "filter": "Ev1: shop::order.placed | $n > 0"},
    {"language": "eventbridge", "filter": {"detail": {"n": [{"numeric": [">", 0]}]}}},
    {"language": "predicate", "filter": "(and (= n 1) (= n 2))"},
    {"language": "predicate", "filter": "(= n"},
    {"language": "predicate", "filter": "(and (> a 1)\n (= b))"},
    {"language": "predicate", "filter": _DEEP},
    {"language": "predicate", "filter": _LARGE},
    {"language": "eventbridge", "filter": {"detail": {"a": "b"}}},
    {"language": "predicate", "filter": "(= a 1)", "type": "order"},
    {"language": "predicate"},
    {"language": "sql", "filter": "a = 1"},
    {"filter": "(= a 1)"},
    {"attributes": {"a": {"b": 1}}},
    {"attributes": {"caf\u00e9": "\u2603", "a.b": None}},
    {"body": {}},
    {"colour": "red"},
)
REGISTRATIONS = [
    Call(
        "admin", "POST /v1/registrations", WANTED, keep={"<registration>": "id", "<seen>": "ETag"}
    ),
    Call(
        "admin",
        "POST /v1/registrations",
        {
            "streams": ["orders", "kept", "orders"],
            **PREDICATE,
            "endpoint": "<endpoint>",
            "suspended": True,
            "group": "night",
            "report": ["attributes.n", "type"],
            "key": "caf\u00e9/1",
            "client": "tester",
        },
        ACTION,
        {"<full>": "id"},
    ),
    Call("admin", "POST /v1/registrations", {**WANTED, "callback": URL}),
    Call("admin", "POST /v1/registrations", {**WANTED, "callback": "https://new.example/"}),
    Call(
        "admin",
        "POST /v1/registrations",
        {**WANTED, "type": "x", "report": {"n": "attributes.n", "a": {"const": 1}}},
    ),
    Call("admin", "POST /v1/registrations", {"streams": ["indexed"], "endpoint": "<endpoint>"}),
    Call("admin", "POST /v1/registrations", {"streams": ["fast"], "type": "order.placed"}),
    Call("admin", "POST /v1/registrations", {"streams": ["fast"], "endpoint": "<endpoint>"}),
    Call("peer", "POST /v1/registrations", WANTED, keep={"<theirregistration>": "id"}),
    Call("stranger", "POST /v1/registrations", {"streams": ["theirs"]}, keep={"<far>": "id"}),
    Call("operator", "POST /v1/registrations?zone=<zone>", {**WANTED, "client": "shop"}),
    Call("operator", "POST /v1/registrations?zone=<zone>", WANTED),
    Call("admin", "POST /v1/registrations", [WANTED, {**WANTED, "type": "b"}]),
    Call("admin", "POST /v1/registrations", [WANTED, {"streams": ["orders", "nowhere"]}]),
    Call("admin", "POST /v1/registrations", [WANTED, {**WANTED, "client": "peer"}]),
    *sends("admin", "POST /v1/registrations", [], [[WANTED]], ["x"], [{}] * 1_001, {}, None, b"1"),
    *(Call("admin", "POST /v1/registrations", {**WANTED, **filter}) for filter in FILTERS[3:]),
    *(
        Call("admin", "POST /v1/registrations", {**WANTED, **more})
        for more in (
            {"key": "caf\u00e9/1"},
            {"group": "nowhere"},
            {"endpoint": 10**15},
            {"endpoint": 1, "callback": URL},
            {"callback": "http://10.0.0.1/"},
            {"client": "nobody"},
            {"streams": ["nowhere"]},
            {"streams": [f"s{n}" for n in range(65)]},
            {"streams": ["theirs"]},
            {"attributes": {str(n): n for n in range(65)}},
            {"version": 1},
        )
    ),
    Call("listener", "POST /v1/registrations", {"streams": ["secret"]}),
    Call("emitter", "POST /v1/registrations", WANTED),
    Call("peer", "POST /v1/registrations", {**WANTED, "client": "tester"}),
    Call("admin", "PATCH /v1/registrations/<registration>", {"type": "a"}, if_match("1")),
    Call("admin", "PATCH /v1/registrations/<registration>", {"type": "a"}, if_match("<seen>")),
    Call("admin", "PATCH /v1/registrations/<registration>", {"type": "a"}, if_match("<seen>")),
    *sends(
        "admin",
        "PATCH /v1/registrations/<registration>",
        {"type": "a"},
        {},
        {"domain": "shop"},
        {"application": "till"},
        {"attributes": {"n": 1}},
        {"type": None, "domain": None, "application": None, "attributes": None},
        PREDICATE,
        {"language": "pairs"},
        {"endpoint": "<endpoint>"},
        {"group": "night"},
        {"report": ["type"]},
        {"suspended": True},
        {"suspended": True},
        {"streams": ["kept", "orders"]},
        {"streams": ["orders"], "group": None, "report": None, "suspended": False},
        {"streams": ["nowhere"]},
        {"group": "nowhere"},
        {"endpoint": 10**15},
        {"key": "x"},
        {"client": "peer"},
        {"callback": URL},
        {"version": 1},
    ),
    Call("admin", "PATCH /v1/registrations/<registration>", {"type": "b"}, if_match("x")),
    Call("admin", "PATCH /v1/registrations/<registration>", {"endpoint": None}, ACTION),
    Call(
        "operator", "PATCH /v1/registrations/<registration>?zone=<zone>", {"type": "order.placed"}
    ),
    *gets("admin", "/v1/registrations/<registration>", "/v1/registrations/<theirregistration>"),
    *gets("admin", "/v1/registrations/<full>"),
    *(
        Call(who, f"{method} /v1/registrations/{registration}", body)
        for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None))
        for who, registration in (
            ("admin", "0"),
            ("admin", "-1"),
            ("admin", "9" * 30),
            ("admin", "<far>"),
            ("peer", "<registration>"),
        )
    ),
    *(
        Call("admin", f"GET /v1/registrations{query}")
        for query in (
            "",
            "?limit=1",
            "?limit=2&after=<registration>",
            "?limit=1000&after=<full>",
            "?after=999999",
            "?client=peer",
            "?stream=kept",
            "?stream=nowhere",
            "?endpoint=<endpoint>",
            "?endpoint=999999",
            "?group=night",
            "?group=nowhere",
            "?suspended=true",
            "?suspended=false&limit=2",
            "?suspended=1",
            "?key=caf%C3%A9/1",
            "?key=none",
            "?key=",
            "?client=nobody",
            "?client=%00",
            "?stream=a%20b",
            "?endpoint=one",
            "?limit=0",
            "?after=x",
            "?type=a",
        )
    ),
    *gets("peer", "/v1/registrations", "/v1/registrations?client=tester"),
    *gets("emitter", "/v1/registrations"),
    *gets("operator", "/v1/registrations?zone=<zone>&limit=1", "/v1/registrations"),
]
_EXPLAIN = "/v1/registrations/<registration>/explain"
EXPLAINED = [
    Call("admin", "POST /v1/streams/orders/events", [EVENT, {**EVENT, "audience": ["ops"]}]),
    *gets(
        "admin",
        f"{_EXPLAIN}?stream=orders&sequence=1",
        f"{_EXPLAIN}?stream=orders&sequence=4",
        f"{_EXPLAIN}?stream=orders&sequence=5",
        f"{_EXPLAIN}?stream=orders&sequence=99",
        f"{_EXPLAIN}?stream=orders&sequence=x",
        f"{_EXPLAIN}?stream=kept&sequence=1",
        f"{_EXPLAIN}?stream=nowhere&sequence=1",
        f"{_EXPLAIN}?stream=a%20b&sequence=1",
        f"{_EXPLAIN}?stream=orders",
        f"{_EXPLAIN}?sequence=1",
        "/v1/registrations/<full>/explain?stream=orders&sequence=4",
        "/v1/registrations/0/explain?stream=orders&sequence=4",
        "/v1/registrations/x/explain?stream=orders&sequence=4",
    ),
    *gets("peer", f"{_EXPLAIN}?stream=orders&sequence=4"),
    *gets("operator", f"{_EXPLAIN}?stream=orders&sequence=4&zone=<zone>"),
    *(Call("admin", "POST /v1/filters/check", filter) for filter in FILTERS),
    *sends(
        "admin",
        "POST /v1/filters/check",
        {"streams": ["orders"], "type": "order.placed"},
        {"streams": ["orders"], "type": "order.placed", "client": "tester"},
        {"streams": ["nowhere"]},
        {"streams": ["a b"]},
        {"client": "nobody"},
        None,
        b"[]",
    ),
    Call("listener", "POST /v1/filters/check", {"streams": ["secret"]}),
    Call("peer", "POST /v1/filters/check", {"client": "tester"}),
    Call("operator", "POST /v1/filters/check?zone=<zone>", {"streams": ["orders"]}),
    *(
        Call("admin", "POST /v1/filters/explain", {**filter, "event": EVENT})
        for filter in FILTERS[:9]
    ),
    *(
        Call("admin", "POST /v1/filters/explain", {"type": "order.placed", **more})
        for more in (
            {"stream": "orders", "sequence": 2},
            {"stream": "orders", "sequence": 2, "channels": ["disk"]},
            {"stream": "orders", "sequence": 2, "mask": "1"},
            {"stream": "orders", "sequence": 2, "mask": "x"},
            {"stream": "orders", "sequence": 2, "channels": ["none"]},
            {"stream": "orders", "sequence": 99},
            {"stream": "old", "sequence": 1},
            {"stream": "nowhere", "sequence": 1},
            {"stream": "orders"},
            {"sequence": 1},
            {},
            {"event": EVENT, "stream": "orders", "sequence": 1},
            {"event": {"domain": "shop"}},
            {"event": {**EVENT, "colour": 1}},
            {"event": {**EVENT, "body": "x" * 900_000}},
            {"event": {**EVENT, "channels": ["disk"]}, "mask": "1"},
        )
    ),
    Call("listener", "POST /v1/filters/explain", {"stream": "secret", "sequence": 1}),
    Call("emitter", "POST /v1/filters/explain", {"event": EVENT}),
    Call("operator", "POST /v1/filters/explain?zone=<zone>", {"stream": "orders", "sequence": 1}),
]
INDEXES = [
    *gets(
        "admin",
        "/v1/streams/orders/match-index",
        "/v1/streams/indexed/match-index",
        "/v1/streams/fast/match-index",
        "/v1/streams/nowhere/match-index",
        "/v1/streams/a%20b/match-index",
    ),
    Call("admin", "POST /v1/streams/orders/match-index", {}),
    Call("admin", "POST /v1/streams/fast/match-index", {}),
    Call("admin", "POST /v1/streams/secret/match-index", {}),
    Call("admin", "POST /v1/streams/nowhere/match-index", {}),
    Call("admin", "POST /v1/streams/indexed/match-index", {"force": True}),
    Call("admin", "POST /v1/streams/indexed/match-index", None),
    Call("admin", "POST /v1/streams/indexed/match-index", {}, ACTION),
    Call("operator", "POST /v1/streams/indexed/match-index?zone=<zone>", {}),
    Call("admin", "POST /v1/streams/indexed/match-index", {}, NEW),
    Call("manager", "POST /v1/streams/indexed/match-index", {}),
    sql(
        "UPDATE index_builds SET requested_at = NULL, started_at = '2001-02-03T04:05:06Z', "
        "heartbeat_at = now() + interval '1 hour', stage = 'reading', done = 1, expected = 2"
    ),
    Call("admin", "GET /v1/streams/indexed/match-index"),
    sql(
        "UPDATE index_builds SET ended_at = '2001-02-03T04:05:07Z', reason = 'index_failed',"
        f" detail = 'The disk is full.' WHERE stream_id = {stream_id('indexed')}"
    ),
    Call("admin", "GET /v1/streams/indexed/match-index"),
    *gets("manager", "/v1/streams/orders/match-index", "/v1/streams/indexed/match-index"),
    *gets("operator", "/v1/streams/system/match-index"),
]
# These end what nothing else names.
ENDED = [
    Call("admin", "DELETE /v1/registrations/<full>", headers=if_match("1")),
    Call("admin", "DELETE /v1/registrations/<full>", headers=if_match("x")),
    Call("admin", "DELETE /v1/registrations/<full>", headers=ACTION),
    Call("admin", "DELETE /v1/registrations/<full>"),
    Call("peer", "DELETE /v1/registrations/<theirregistration>"),
    Call("admin", "DELETE /v1/registration-groups/<day>", headers=if_match("1")),
    Call("admin", "DELETE /v1/registration-groups/<day>", headers=ACTION),
    Call("admin", "DELETE /v1/registration-groups/<day>"),
    Call("admin", "PATCH /v1/registrations/<registration>", {"group": "night"}),
    Call("admin", "DELETE /v1/registration-groups/<group>"),
    Call("admin", "DELETE /v1/endpoints/<endpoint>"),
    Call("admin", "DELETE /v1/endpoints/<second>", headers=if_match("1")),
    Call("operator", "DELETE /v1/endpoints/<second>?zone=<zone>", headers=ACTION),
    Call("admin", "DELETE /v1/endpoints/<second>"),
    Call("admin", "GET /v1/registrations?limit=3"),
]
CALLS = [*REGISTRATIONS, *EXPLAINED, *INDEXES]
