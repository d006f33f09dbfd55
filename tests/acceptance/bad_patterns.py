"""Bad input at the routes of pattern groups and patterns."""

from collections.abc import Iterator
from typing import Any

from eventhub.base import limits
from tests.acceptance.bad_inputs import Bad

_GROUPS, _PATTERNS = "/v1/pattern-groups", "/v1/patterns"
_GROUP = {"name": "new", "streams": ["orders"]}
_PATTERN = {"group": "taken", "name": "new", "language": "ready", "text": "{A}"}
_SLOW = "{A | " + " and ".join(f"$x{n} != {n}" for n in range(60)) + "}"
_LARGE = "{A | " + " or ".join(f"$x{n} != 1" for n in range(99)) + "}"
_BOTH = {"language": "ready", "text": "{A}", "stream": "orders", "events": []}


def _of(language: str, text: str, **more: Any) -> dict[str, Any]:
    return {**_PATTERN, "language": language, "text": text, **more}


def bad_requests() -> Iterator[Bad]:
    """Yield what is wrong at the routes of patterns only."""
    yield from _groups()
    for name, body, status, code, at in (
        ("no group", {**_PATTERN, "group": "none"}, 404, "unknown_pattern_group", "group"),
        ("a taken name", {**_PATTERN, "name": "taken"}, 409, "pattern_exists", "name"),
        ("no language", {**_PATTERN, "language": "sql"}, 400, "invalid_field", "language"),
        ("unfinished", _of("ready", "{a: A"), 400, "filter_syntax", "text"),
        ("too long", _of("ready", "x" * (limits.PATTERN_CHARS_MAX + 1)), 422, "pattern_too_large",
         "text"),
        ("a long chain", _of("ready", " && ".join(["{A}"] * 500)), 422, "pattern_too_large",
         "text"),
        ("a long sum", _of("ready", "{a: A} where a.x > 1" + " + 1" * 3_000), 422,
         "filter_too_large", "text"),
        ("a large filter", _of("ready", _LARGE), 422,
         "filter_too_large", "text"),
        ("no event", _of("temporal", "(test (< ?a ?b))"), 400, "temporal_syntax", "text"),
        ("memory", _of("temporal", "(event (time ?t)) (memory 99999)"), 422,
         "temporal_too_large", "text"),
        ("no variable", _of("agent", "(notify event)"), 400, "program_syntax", "text"),
        ("a long program", _of("agent", "'a " * limits.PROGRAM_PARTS_MAX + "'a"), 422,
         "program_too_large", "text"),
        ("once", _of("agent", "(notify (event))", once=True), 400, "invalid_field", "once"),
        ("recent", {**_PATTERN, "recent": True}, 400, "invalid_field", "recent"),
        ("no session", _of("ready", "{a: A} do notify(a) to 'none'"), 404, "unknown_session",
         "text"),
        ("no stream", _of("ready", "{a: A} do announce(X, {}) into 'none'"), 404, "unknown_stream",
         "text"),
        ("the hub's own", _of("ready", "{a: A} do announce(X, {}) into 'system'"), 403, "forbidden",
         "text"),
        ("costly", [{**_of("ready", _SLOW), "name": f"n{n}"} for n in range(100)], 409,
         "patterns_too_costly", "text"),
    ):  # fmt: skip
        place: dict[str, Any] = {"field": at}
        if isinstance(body, list):
            place["index"] = limits.FILTERS_TRIED_MAX // 60
        yield Bad(name, f"POST {_PATTERNS}", _PATTERNS, status, code, place, body)
    yield Bad("many", f"POST {_PATTERNS}", _PATTERNS, 413, "too_many_patterns", {},
              [_PATTERN] * (limits.PATTERNS_PER_REQUEST_MAX + 1))  # fmt: skip
    yield Bad("none", f"POST {_PATTERNS}", _PATTERNS, 400, "invalid_field", {}, [])
    yield Bad("two clients", f"POST {_PATTERNS}", _PATTERNS, 400, "invalid_field",
              {"index": 1, "field": "client"},
              [_PATTERN, {**_PATTERN, "client": "them"}])  # fmt: skip
    yield Bad("unfinished", f"PATCH {_PATTERNS}/{{pattern}}", f"{_PATTERNS}/<pattern>", 400,
              "filter_syntax", {"field": "text"}, {"text": "{a"})  # fmt: skip
    yield from _trials()
    for method in ("GET", "PATCH", "DELETE"):
        body = {"suspended": True} if method == "PATCH" else None
        for route, name in ((_PATTERNS, "pattern"), (_GROUPS, "pattern_group")):
            yield Bad(f"no such {name}", f"{method} {route}/{{{name}}}", f"{route}/999999", 404,
                      f"unknown_{name}", {"field": name}, body, method=method)  # fmt: skip


def _groups() -> Iterator[Bad]:
    for name, body, status, code, at in (
        ("a taken name", {**_GROUP, "name": "taken"}, 409, "pattern_group_exists", "name"),
        ("no streams", {**_GROUP, "streams": []}, 400, "invalid_field", "streams"),
        ("many streams", {**_GROUP, "streams": ["orders"] * 17}, 400, "field_too_long", "streams"),
        ("no stream", {**_GROUP, "streams": ["none"]}, 404, "unknown_stream", "streams.0"),
        ("no output", {**_GROUP, "output_stream": "none"}, 404, "unknown_stream", "output_stream"),
        ("the hub's own", {**_GROUP, "output_stream": "system"}, 403, "forbidden",
         "output_stream"),
        ("of the hub", {**_GROUP, "streams": ["system"]}, 403, "forbidden", "output_stream"),
        ("no client", {**_GROUP, "client": "nobody"}, 404, "not_found", "client"),
    ):  # fmt: skip
        yield Bad(name, f"POST {_GROUPS}", _GROUPS, status, code, {"field": at}, body)
    route = f"PATCH {_GROUPS}/{{pattern_group}}"
    yield Bad("a taken name", route, f"{_GROUPS}/<othergroup>", 409, "pattern_group_exists",
              {"field": "name"}, {"name": "taken"})  # fmt: skip
    yield Bad("a listener", route, f"{_GROUPS}/<othergroup>", 403, "forbidden", {},
              {"suspended": True}, key="listener")  # fmt: skip


def _trials() -> Iterator[Bad]:
    route = f"{_PATTERNS}/dry-run"
    for name, body, status, code, at in (
        ("no events", {**_BOTH, "events": None}, 400, "invalid_field", "events"),
        ("both", _BOTH, 400, "invalid_field", "events"),
        ("no event", {**_BOTH, "events": [{}], "stream": ""}, 400, "invalid_field", "stream"),
        ("no stream", {"language": "ready", "text": "{A}", "stream": "none"}, 404,
         "unknown_stream", "stream"),
        ("unfinished", {"language": "ready", "text": "{A", "stream": "orders"}, 400,
         "filter_syntax", "text"),
        ("a bad event", {"language": "ready", "text": "{A}", "events": [{"domain": "d"}]}, 400,
         "missing_field", "events.0.type"),
    ):  # fmt: skip
        yield Bad(name, f"POST {route}", route, status, code, {"field": at}, body)
    yield Bad("a number", f"POST {_PATTERNS}/check", f"{_PATTERNS}/check", 400, "invalid_field",
              {"field": "text"}, {"language": "ready", "text": 1})  # fmt: skip
