"""Bad input of the routes of types, and in the other formats of emits."""

from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.bad_inputs import DECLARED, EMIT, EVENT, Bad, World
from tests.unit.eventhub.event.test_fox_xml import REFERENCE

pytestmark = pytest.mark.usefixtures("untouched")
PUT = "PUT /v1/types/{domain}/{type}"
PATH = "/v1/types/shop/new"
XML = REFERENCE.replace(">quotes<", ">orders<").replace(">fox<", ">tester<")
CLOUD = {"specversion": "1.0", "id": "a", "source": "/s", "type": "t"}


def put(name: str, code: str, field: str, body: Any, **more: Any) -> Bad:
    place = {"field": field} if field else {}
    path, status = more.pop("path", PATH), more.pop("status", 400)
    return Bad(name, PUT, path, status, code, place, body, **more)


def schema(name: str, field: str, given: Any) -> Bad:
    return put(name, "invalid_schema", field, {"schema": given})


def form(name: str, kind: str, code: str, at: dict[str, Any], body: Any, **more: Any) -> Bad:
    headers = {"Content-Type": kind, **more.pop("headers", {})}
    path = "/v1/streams/orders/events"
    return Bad(name, EMIT, path, more.pop("status", 400), code, at, body, headers=headers)


def typed(name: str, field: str, **event: Any) -> Bad:
    at = {"index": 1, "field": field}
    body = [EVENT, {**DECLARED, **event}]
    return Bad(name, EMIT, "/v1/streams/orders/events", 422, "type_violation", at, body)


DECLARATIONS = (
    put("no schema", "missing_field", "schema", {}),
    put("unknown", "unknown_field", "scheme", {"schema": {}, "scheme": {}}),
    put("evolution", "invalid_field", "evolution", {"schema": {}, "evolution": "forward"}),
    put("no such parent", "unknown_type", "parent", {"schema": {}, "parent": "x"}, status=404),
    put("its own parent", "invalid_schema", "parent", {"schema": {}, "parent": "measured"},
        path="/v1/types/shop/measured"),
    put("breaks", "incompatible_type", "schema", {"schema": {"required": ["n", "more"]}},
        path="/v1/types/shop/measured", status=409),
    put("stale", "changed", "", {"schema": {}}, path="/v1/types/shop/measured",
        status=412, headers={"If-Match": "1"}),
    put("a long name", "field_too_long", "type", {"schema": {}},
        path=f"/v1/types/shop/{'a' * 201}"),
    put("no grant", "forbidden", "", {"schema": {}}, key="manager", status=403),
    schema("a text", "schema", "x"),
    schema("a number", "schema", 5),
    schema("elsewhere", "schema.$ref", {"$ref": "http://127.0.0.1:1/x"}),
    schema("a file", "schema.$ref", {"$ref": "file:///etc/passwd"}),
    schema("in a circle", "schema.$defs.a.$ref.$ref", {"$defs": {"a": {"$ref": "#/$defs/a"}}}),
    schema("no keyword", "schema.mininum", {"mininum": 1}),
    schema("a wrong value", "schema.minLength", {"minLength": -1}),
    schema("look-around", "schema.not.pattern", {"not": {"pattern": "(?=a)"}}),
    schema("too large", "schema", {"description": "x" * limits.TYPE_SCHEMA_BYTES_MAX}),
    put("no header field", "invalid_schema", "header.body",
        {"schema": {}, "header": {"required": ["body"]}}),
    put("a header that is none", "invalid_schema", "header", {"schema": {}, "header": []}),
    Bad("no version", "GET /v1/types/{domain}/{type}/{version}", "/v1/types/shop/measured/9", 404,
        "unknown_type", {"field": "version"}),
    Bad("no type", "GET /v1/types/{domain}/{type}", "/v1/types/shop/none", 404, "unknown_type",
        {"field": "type"}),
    Bad("a page", "GET /v1/types", "/v1/types?after=x", 400, "invalid_field", {"field": "after"}),
)  # fmt: skip
EVENTS = (
    typed("a missing field", "attributes.n", attributes={}),
    typed("a wrong value", "attributes.n", attributes={"n": "x"}),
    typed("a version", "version", version="7"),
    typed("no version", "version", version="one"),
    Bad(
        "undeclared",
        EMIT,
        "/v1/streams/strict/events",
        422,
        "undeclared_type",
        {"index": 1, "field": "type"},
        [DECLARED, EVENT],
    ),
)
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
FORMS = (
    form("no JSON", STRUCTURED, "malformed_json", {}, b"{"),
    form("no version", STRUCTURED, "invalid_field", {"field": "specversion"}, {"id": "a"}),
    form("no id", STRUCTURED, "missing_field", {"field": "id"}, {**CLOUD, "id": None}),
    form("a bad extension", STRUCTURED, "unknown_field", {"field": "A"}, {**CLOUD, "A": 1}),
    form("no channel", STRUCTURED, "unknown_channel", {"index": 0, "field": "channels"},
         {**CLOUD, "ehchannels": "none"}),
    form("no batch", BATCH, "invalid_field", {}, CLOUD),
    form("in a batch", BATCH, "invalid_field", {"index": 1, "field": "type"},
         [CLOUD, {**CLOUD, "type": ""}]),
    form("an empty batch", BATCH, "empty_batch", {}, []),
    form("a large batch", BATCH, "batch_too_large", {}, [CLOUD] * 1_001, status=413),
    form("binary", "text/plain", "missing_field", {"field": "id"}, b"x",
         headers={"ce-specversion": "1.0"}),
    form("binary JSON", "application/json", "malformed_json", {}, b"{",
         headers={f"ce-{name}": value for name, value in CLOUD.items()}),
    form("no property", "text/x-oif", "invalid_field", {"index": 1, "field": "property 0"},
         b"a: 1\nb"),
    form("OIF in Latin-1", "text/x-oif", "invalid_utf8", {}, b"a: \xff"),
    form("no OIF", "text/x-oif", "empty_batch", {}, b"\n"),
    form("no XML", "application/xml", "malformed_xml", {}, b"<Event>"),
    form("a bomb", "application/xml", "malformed_xml", {},
         XML.replace('<?xml version="1.0"?>', '<!DOCTYPE E [<!ENTITY a "x">]>').encode()),
    form("another root", "text/xml", "invalid_xml", {"field": "E"}, b"<E/>"),
    form("another stream", "text/xml", "invalid_field", {"field": "Event/StreamId"},
         XML.replace(">orders<", ">secret<").encode()),
    form("another client", "text/xml", "invalid_field", {"field": "Event/EventId/ClientId"},
         XML.replace(">tester<", ">ann<").encode()),
    Bad("no such form", "GET /v1/streams/{stream}/events/{sequence}", "/v1/streams/old/events/3",
        406, "not_representable", {"field": "id"}, headers={"Accept": "application/xml"}),
    Bad("a long key", EMIT, "/v1/streams/orders/events", 400, "field_too_long",
        {"field": "Idempotency-Key"}, EVENT, headers={"Idempotency-Key": "x" * 201}),
)  # fmt: skip
CASES = (*DECLARATIONS, *EVENTS, *FORMS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_request_of_types_and_forms(world: World, case: Bad) -> None:
    world.check(case)
