"""Bad input of the routes that report interest to producers."""

from typing import Any

import pytest

from tests.acceptance.bad_inputs import Bad, World

pytestmark = pytest.mark.usefixtures("untouched")
CLOSURE = "GET /v1/streams/{stream}/closure"
INTEREST = "POST /v1/streams/{stream}/interest"


def closure(name: str, outcome: str, at: str = "", *, query: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    path = f"/v1/streams/{more.pop('stream', 'orders')}/closure{query}"
    return Bad(name, CLOSURE, path, int(status), code, {"field": at} if at else {}, **more)


def interest(name: str, outcome: str, at: str = "", **more: Any) -> Bad:
    status, code = outcome.split()
    path = f"/v1/streams/{more.pop('stream', 'orders')}/interest"
    body = more.pop("body", None) or {"shape": more.pop("shape", {})}
    at_field = {"field": at} if at else {}
    return Bad(name, INTEREST, path, int(status), code, at_field, body=body, **more)


CASES = (
    closure("no key", "401 unauthenticated", key=""),
    closure("wrong key", "401 invalid_credentials", key="wrong"),
    closure("revoked key", "401 invalid_credentials", key="revoked"),
    closure("a listener", "403 forbidden", key="listener"),
    closure("of another stream", "403 forbidden", key="emitter", stream="secret"),
    closure("of the hub's own stream", "403 forbidden", stream="system"),
    closure("of no stream", "404 unknown_stream", stream="nowhere"),
    closure("of another zone's stream", "404 unknown_stream", stream="theirs"),
    closure("unknown parameter", "400 unknown_field", "colour", query="?colour=red"),
    closure("audience twice", "400 invalid_field", "audience", query="?audience=a&audience=b"),
    closure("empty audience", "400 invalid_field", "audience", query="?audience="),
    closure("NUL in the audience", "400 invalid_field", "audience", query="?audience=%00"),
    closure("no UTF-8", "400 invalid_utf8", "query", query="?audience=%ff"),
    closure("a large audience", "400 field_too_long", "audience",
            query="?audience=" + ",".join(f"g{n}" for n in range(65))),
    closure("a post", "405 method_not_allowed", method="POST", body={}),
    interest("no key", "401 unauthenticated", key=""),
    interest("a listener", "403 forbidden", key="listener"),
    interest("of no stream", "404 unknown_stream", stream="nowhere"),
    interest("no JSON", "400 malformed_json", body=b"{"),
    interest("no UTF-8", "400 invalid_utf8", body=b'{"shape": {"type": "\xff"}}'),
    interest("too deep", "400 too_deep", body=b'{"shape": ' + b"[" * 20_000),
    interest("a list", "400 invalid_field", "body", body=b"[]"),
    interest("no shape", "400 missing_field", "shape", body={"audience": ["ops"]}),
    interest("a shape that is none", "400 invalid_field", "shape", shape="debug"),
    interest("unknown field", "400 unknown_field", "sort", body={"shape": {}, "sort": 1}),
    interest("unknown field of a shape", "400 unknown_field", "shape.body", shape={"body": 1}),
    interest("a type that is no text", "400 invalid_field", "shape.type", shape={"type": 7}),
    interest("a long type", "400 field_too_long", "shape.type", shape={"type": "x" * 2_000}),
    interest("attributes that are none", "400 invalid_field", "shape.attributes",
             shape={"attributes": []}),
    interest("an application that is none", "400 invalid_field", "shape.application",
             shape={"application": {}}),
    interest("an audience that is none", "400 invalid_field", "audience",
             body={"shape": {}, "audience": "ops"}),
    interest("too large", "413 body_too_large", shape={"type": "x" * 70_000}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.route} {case.name}")
def test_bad_request_about_interest(world: World, case: Bad) -> None:
    world.check(case)
