"""Hostile input at every management endpoint: a 4xx with a code, never a 500; nothing changes."""

import hashlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.urls import URLPattern, URLResolver, get_resolver

from eventhub.api.resource import PUT
from eventhub.base import limits
from eventhub.streams.api import Streams
from tests.integration.access_world import (
    EVERYTHING,
    ApiCaller,
    caller_with,
    key,
    public_id,
    refused,
)

pytestmark = pytest.mark.django_db
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
NAMES = ("%00", "a%00b", "%F0%9F%92%A9", "%ff", "a%20b", "-a", "..", "%0a", "a" * 201, "a" * 9000)
BODIES: dict[str, bytes] = {
    "empty": b"",
    "space": b" ",
    "half": b'{"name": "x"',
    "comma": b'{"name": "x",}',
    "garbage": b"\0\1\2",
    "bad utf-8": b'{"name": "\xff"}',
    "utf-16": '{"name": "x"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"name": "x"}',
    "half surrogate": b'{"name": "\\ud800"}',
    "half surrogate as a name": b'{"\\udfff": 1}',
    "a NUL": b'{"name": "a\\u0000b", "label": "\\u0000", "username": "\\u0000", "password": "x"}',
    "NaN": b'{"name": NaN}',
    "infinity": b'{"mask": -Infinity}',
    "huge float": b'{"mask": 1e999}',
    "huge integer": b'{"mask": ' + b"9" * 100_000 + b"}",
    "65 bits": b'{"mask": 18446744073709551616}',
    "deep array": b'{"grants": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep object": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "unclosed quotes": b'{"a": "' + b'\\"' * 100_000,
    "twice": b'{"name": "x", "name": "y"}',
    "many names": json.dumps({f"n{number}": 1 for number in range(10_000)}).encode(),
    "too large": b'{"name": "' + b"x" * limits.MANAGE_BODY_BYTES_MAX + b'"}',
    "no object": b"[]",
    "null": b"null",
    "text": b'"name"',
    "number": b"7",
    "unknown field": b'{"admin": true}',
    "a long unknown field": b'{"' + b"x" * 10_000 + b'": true}',
    "wrong types": json.dumps(
        dict.fromkeys(
            ["name", "grants", "label", "expires_at", "mask", "username", "password"], 17.5
        )
    ).encode(),
    "lists": b'{"name": [], "grants": {}, "mask": [], "lifetime_s": [], "label": {}}',
}
LACKED = [("garbage", BODIES["garbage"])]  # with a method that a route lacks
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    1 << 63,
    "",
    " ",
    "a b",
    "x" * 300,
    "é",
    [],
    {},
    [[]],
    {"a": 1},
    [{"action": "emit"}],
    [{"action": "emit", "streams": "a", "zone": "b"}],
    [{"action": ["emit"], "streams": {"a": 1}}],
    [{"action": "EMIT", "streams": "*"}],
    [{"action": "emit", "streams": "a" * 300}],
    [{"action": "emit", "streams": "*"}] * 200,
    "2026-13-45T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "2020-01-01T00:00:00Z",
    "2030-01-01T00:00:00",
)
FIELDS = (
    ("POST", "/v1/zones", "name"),
    ("POST", "/v1/clients", "name"),
    ("POST", "/v1/clients/tester/keys", "grants"),
    ("POST", "/v1/clients/tester/keys", "expires_at"),
    ("POST", "/v1/clients/tester/keys", "label"),
    ("POST", "/v1/connection-tokens", "grants"),
    ("POST", "/v1/connection-tokens", "lifetime_s"),
    ("PUT", "/v1/channels/disk", "mask"),
    ("PUT", "/v1/streams/orders", "segment_events_max"),
    ("PUT", "/v1/streams/orders", "segment_bytes_max"),
)


def routes(patterns: Any = None, prefix: str = "/") -> Iterator[str]:
    """Yield every route of the URL configuration below /v1, none left out."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern) and prefix.startswith("/v1"):
            yield prefix + str(pattern.pattern)


def paths(value: str) -> Iterator[str]:
    """Yield every route with one parameter replaced by the value, the others harmless."""
    good = {"client": "tester", "channel": "disk", "stream": "orders", "sequence": "1"}
    for route in routes():
        names = [part[5:-1] for part in route.split("/") if part.startswith("<str:")]
        for bad in names:
            path = route
            for name in names:
                path = path.replace(
                    f"<str:{name}>", value if name == bad else good.get(name, "abcdefghijkm")
                )
            yield path


def digest() -> str:
    """Return a digest of all stored rows but logins."""
    found = hashlib.sha256()
    with connection.cursor() as cursor:
        for table in ("zones", "clients", "api_keys", "channels", "streams", "heads", "segments"):
            cursor.execute(f"SELECT t::text FROM {table} t ORDER BY 1")
            found.update(repr((table, cursor.fetchall())).encode())
    return found.hexdigest()


def check(response: Any, what: str) -> str:
    """Check the form of a refusal; return its code."""
    assert 400 <= response.status_code < 500, (what, response.status_code, response.content)
    assert response["Content-Type"] == "application/problem+json", (what, response.content)
    problem = json.loads(response.content)
    assert problem["detail"] and len(response.content) < 2000, what
    return str(problem["code"])


def methods_of(manager: ApiCaller, path: str) -> set[str]:
    """Return the methods of a route, and one that it lacks: it looks at nothing else of that."""
    response = manager.call("TRACE", path)
    check(response, f"TRACE {path[:80]}")
    allowed = response.get("Allow", ",".join(METHODS)).replace(" ", "").split(",")
    return {"TRACE"} | {*allowed} & {*METHODS}


@pytest.fixture
def manager() -> ApiCaller:
    made = caller_with(*EVERYTHING)
    assert made.put("/v1/streams/orders").status_code == 201
    return made


def test_hostile_names_in_every_path(manager: ApiCaller) -> None:
    before, asked = digest(), 0
    for name in NAMES:
        for path in paths(name):
            for method in METHODS if name == NAMES[0] else methods_of(manager, path):
                body = {"mask": 1} if "/channels" in path else {}
                check(manager.call(method, path, body), f"{method} {path[:80]}")
                asked += 1
    assert digest() == before
    assert asked > 2 * len(NAMES) * len(list(paths("")))


def test_hostile_bodies_at_every_endpoint(manager: ApiCaller) -> None:
    before, codes = digest(), set()
    for path in paths("tester"):
        taken = methods_of(manager, path)
        for method in ("POST", "PUT", "PATCH"):
            for what, body in BODIES.items() if method in taken else LACKED:
                if what != "empty":
                    codes.add(check(manager.call(method, path, body), f"{method} {path} {what}"))
    for path in ("/v1/zones", "/v1/clients", "/v1/connection-tokens", "/v1/session"):
        for what, body in BODIES.items():
            if (path, what) != ("/v1/connection-tokens", "empty"):
                codes.add(check(manager.post(path, body), f"{path} {what}"))
    assert digest() == before
    assert codes >= {
        "malformed_json",
        "invalid_utf8",
        "number_out_of_range",
        "too_deep",
        "body_too_large",
        "unknown_field",
        "missing_field",
        "invalid_field",
        "method_not_allowed",
    }


def test_hostile_values_in_every_field(manager: ApiCaller) -> None:
    before = digest()
    for method, path, field in FIELDS:
        for value in VALUES:
            if not harmless(field, value):
                body = {"grants": [], field: value} if path.endswith("keys") else {field: value}
                check(manager.call(method, path, body), f"{method} {path} {field}={value!r}"[:200])
    assert digest() == before


def harmless(field: str, value: Any) -> bool:
    if field == "label":
        return isinstance(value, str) and len(value) <= limits.NAME_CHARS_MAX
    return (field, value) in [("expires_at", None), ("grants", [])]


LONG = "a" * 999
QUERIES = (
    f"zone= zone=%00 zone=%ff zone={LONG} zne=default %00=1 limit= limit=0 limit=-1 limit=1001"
    f" limit=x limit=1.0 limit={'9' * 5000} limit=%D9%A1 after=%00 after=a%20b after={LONG}"
)
KINDS = "text/plain application/xml application/x-www-form-urlencoded multipart/form-data"


@pytest.mark.parametrize("query", QUERIES.split())
def test_hostile_queries(manager: ApiCaller, query: str) -> None:
    for path in ("clients", "clients/tester/keys", "streams", "streams/orders/segments"):
        check(manager.get(f"/v1/{path}?{query}"), f"{path}?{query}"[:100])


@pytest.mark.parametrize("after", ["x", "1", "1.", "1.1.1", "9" * 19 + ".1", "-1.1"])
def test_hostile_marks_of_pages(manager: ApiCaller, after: str) -> None:
    check(manager.get(f"/v1/streams/orders/segments?after={after}"), after)


@pytest.mark.parametrize(
    "kind",
    [*KINDS.split(), "", "x" * 5000, "multipart/form-data; boundary=\0", "application/json5"],
)
def test_other_kinds_of_bodies_are_refused(manager: ApiCaller, kind: str) -> None:
    for method, path in (("POST", "/v1/clients"), ("PUT", "/v1/streams/new")):
        response = manager.call(method, path, b'{"name": "x"}', content_type=kind)
        refused(response, 415, "unsupported_media_type")


def test_a_media_type_may_have_parameters_and_accept_may_say_anything(manager: ApiCaller) -> None:
    kind = "Application/JSON; charset=utf-8"
    headers = {"Accept": "text/html;q=x, \0"}
    response = manager.call(
        "POST", "/v1/clients", b'{"name": "x"}', content_type=kind, headers=headers
    )
    assert (response.status_code, response["Content-Type"]) == (201, "application/json")
    assert manager.get("/v1/clients?format=html").status_code == 400


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/nope", "/v1/%00", "/v1/clients/", "/%ff"])
def test_unknown_paths_are_problems_too(path: str) -> None:
    refused(ApiCaller().get(path), 404, "not_found")


def test_a_body_without_its_length_counts(manager: ApiCaller) -> None:
    """DRF takes a chunked body for none: a policy would be ignored and the stream still made."""
    headers = {
        "authorization": f"Bearer {manager.key}",
        "content-type": "application/json",
        "transfer-encoding": "chunked",
    }
    scope = {
        "type": "http",
        "method": "PUT",
        "path": "/v1/streams/chunked",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    request = ASGIRequest(scope, io.BytesIO(b'{"segment_events_max": 7}'))
    response = Streams.as_view(PUT)(request, stream="chunked")
    assert response.data["segment_events_max"] == 7


def test_a_wrong_host_is_a_problem() -> None:
    for host in ("evil.example", "evil example\0", "x" * 5000):
        problem = refused(ApiCaller().get("/v1/zones", headers={"Host": host}), 400, "bad_request")
        assert "EVENTHUB_ALLOWED_HOSTS" in problem["detail"]


def test_a_key_of_a_shape_like_a_key_but_of_nobody(manager: ApiCaller) -> None:
    text = key("listen:*")
    swapped = text[:-1] + ("a" if text[-1] != "a" else "b")
    refused(ApiCaller(swapped).get("/v1/channels"), 401, "invalid_credentials")
    other = f"ehk_{public_id(manager.key)}_{text.split('_', 2)[2]}"
    refused(ApiCaller(other).get("/v1/channels"), 401, "invalid_credentials")
