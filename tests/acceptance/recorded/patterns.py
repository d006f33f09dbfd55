"""Calls about pattern groups and patterns."""

from tests.acceptance.recorded.call import Call, gets, sends

_GROUP = {"name": "alarms", "streams": ["orders"]}
_NEW = {"group": "alarms", "name": "late", "language": "ready", "text": "{a: A}; {b: B}"}
_BODY = {"language": "ready", "text": "{a: A}; {b: B} per $u within 1h"}
_EVENTS = [
    {"domain": "d", "type": "A", "attributes": {"u": 1}, "time": "2026-01-01T00:00:00Z"},
    {"domain": "d", "type": "B", "attributes": {"u": 1}, "time": "2026-01-01T00:00:05Z"},
]
_ONE = "/v1/patterns/<pattern>"
_GROUPS = "/v1/pattern-groups"
CALLS = [
    *sends("admin", f"POST {_GROUPS}", {}, {**_GROUP, "streams": []}, {**_GROUP, "streams": ["x"]}),
    Call("admin", f"POST {_GROUPS}", {**_GROUP, "output_stream": "system"}),
    Call("admin", f"POST {_GROUPS}", _GROUP, keep={"<patterngroup>": "id"}),
    *sends("admin", f"POST {_GROUPS}", _GROUP),
    *sends("admin", "POST /v1/patterns", {**_NEW, "text": "{a"}, {**_NEW, "group": "none"}),
    *sends("admin", "POST /v1/patterns", [], [{**_NEW, "once": 1}], {**_NEW, "recent": True}),
    Call("admin", "POST /v1/patterns", _NEW, keep={"<pattern>": "id"}),
    *sends("admin", "POST /v1/patterns", _NEW, [{**_NEW, "name": "a"}, {**_NEW, "name": "b"}]),
    *gets("admin", _ONE, "/v1/patterns?status=running&limit=1", "/v1/patterns?status=x", _GROUPS),
    *gets("admin", f"{_GROUPS}/<patterngroup>", f"{_GROUPS}/x", "/v1/patterns/x"),
    *gets("admin", f"{_ONE}/waiting", "/v1/patterns/x/waiting", "/v1/patterns/999999/waiting"),
    *sends("admin", f"PATCH {_ONE}", {"text": 1}, {"suspended": True}, {"text": "{b: B}"}),
    *sends("admin", f"PATCH {_GROUPS}/<patterngroup>", {"suspended": False}, {"name": "alerts"}),
    *sends("admin", "POST /v1/patterns/check", {}, _BODY, {**_BODY, "text": "{a"}),
    *sends("admin", "POST /v1/patterns/check", {"language": "agent", "text": "(notify (event))"}),
    *sends("admin", "POST /v1/patterns/dry-run", _BODY, {**_BODY, "events": _EVENTS}),
    *sends("admin", "POST /v1/patterns/dry-run", {**_BODY, "events": [{}]}),
]
ENDED = [
    *(Call("admin", f"DELETE {_ONE}") for _ in range(2)),
    *(Call("admin", f"DELETE {_GROUPS}/<patterngroup>") for _ in range(2)),
]
