"""The map of a source: where fields come from, and what a map may not be."""

from typing import Any

import pytest

from eventhub.base import limits
from eventhub.base.errors import EventHubError, MalformedJson
from registrations.sources.errors import UnmappedDelivery
from registrations.sources.events import MappedSource, event_of
from registrations.sources.mapping import apply_map, parse_map
from registrations.sources.providers.registry import PROVIDERS
from registrations.sources.received import FORM, ReceivedRequest

USUAL = PROVIDERS["hmac"].usual
BODY = b'{"a": {"b/c": [10, {"~": "deep"}]}, "n": null, "yes": true, "text": "t", "type": "kind"}'


def request(
    body: bytes = BODY, media: str = "application/json", query: str = ""
) -> ReceivedRequest:
    return ReceivedRequest({"content-type": media, "x-name": "value"}, query, body)


def mapped(mapping: dict[str, Any], of: ReceivedRequest | None = None) -> dict[str, Any]:
    return apply_map(parse_map(mapping), USUAL, of or request())


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"value": 7}, 7),
        ({"value": False}, False),
        ({"body": "/a/b~1c/0"}, 10),
        ({"body": "/a/b~1c/1/~0"}, "deep"),
        ({"body": "/a/b~1c"}, [10, {"~": "deep"}]),
        ({"body": "/yes"}, True),
        ({"header": "X-Name"}, "value"),
        ({"query": "q"}, "1 2"),
        ({"body": "/n", "default": "none"}, "none"),
        ({"body": "/a/b~1c/2", "default": 0}, 0),
        ({"body": "/a/b~1c/-1", "default": 0}, 0),
        ({"body": "/text/x", "default": 0}, 0),
        ({"join": [{"body": "/text"}, {"body": "/none"}, {"header": "x-name"}]}, "t.value"),
        ({"join": [{"value": "a"}, {"body": "/yes"}], "separator": "/"}, "a/true"),
        ({"join": [{"body": "/none"}], "default": "d"}, "d"),
    ],
)
def test_a_term_reads_its_origin(term: dict[str, Any], expected: Any) -> None:
    found = mapped({"attributes": {"x": term}}, request(query="q=1+2"))
    assert found["attributes"] == {"x": expected}


def test_what_a_request_does_not_have_is_left_out() -> None:
    terms = {"x": {"body": "/none"}, "y": {"body": "/n"}, "z": {"query": "q"}}
    found = mapped({"attributes": terms, "key": {"body": "/none"}, "id": {"header": "none"}})
    assert found == {"domain": "Webhook", "type": "kind", "attributes": {}}


def test_fields_of_a_form_are_texts_and_its_payload_is_read_as_json() -> None:
    terms = {"attributes": {"x": {"body": "/a"}}, "type": {"value": "t"}}
    assert mapped(terms, request(b"a=1&b=%C3%A9", FORM))["attributes"] == {"x": "1"}
    wrapped = request(b"payload=%7B%22a%22%3A%201%7D", FORM)
    assert mapped(terms, wrapped)["attributes"] == {"x": 1}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T12:00:00+01:00", "2026-03-01T12:00:00+01:00"),
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00+00:00"),
        (1_700_000_000, "2023-11-14T22:13:20+00:00"),
        ("1700000000.5", "2023-11-14T22:13:20.500000+00:00"),
        (1_700_000_000_000, "2023-11-14T22:13:20+00:00"),
    ],
)
def test_a_time_is_a_text_or_seconds_or_milliseconds(value: Any, expected: str) -> None:
    assert mapped({"time": {"value": value}})["time"] == expected


@pytest.mark.parametrize(
    ("mapping", "field"),
    [
        ({"time": {"value": "yesterday"}}, "time"),
        ({"time": {"value": "2026-03-01T12:00:00"}}, "time"),
        ({"time": {"value": 1e300}}, "time"),
        ({"time": {"value": True}}, "time"),
        ({"type": {"body": "/none"}}, "type"),
        ({"domain": {"value": ""}}, "domain"),
        ({"key": {"body": "/a"}}, "key"),
    ],
)
def test_a_request_without_a_usable_value_has_no_event(mapping: dict[str, Any], field: str) -> None:
    with pytest.raises(UnmappedDelivery) as caught:
        mapped(mapping)
    assert caught.value.field == field


TOO_MANY = {f"a{number}": {"value": 1} for number in range(limits.SOURCE_ATTRIBUTES_MAX + 1)}
PARTS = [{"value": "a"}] * (limits.SOURCE_JOIN_MAX + 1)


@pytest.mark.parametrize(
    ("mapping", "field"),
    [
        ([], None),
        ({"other": {"value": 1}}, "other"),
        ({"type": "text"}, "type"),
        ({"type": {}}, "type"),
        ({"type": {"default": "x"}}, "type"),
        ({"type": {"value": "x", "body": "/x"}}, "type"),
        ({"type": {"body": "x"}}, "type.body"),
        ({"type": {"body": "/~2"}}, "type.body"),
        ({"type": {"body": "/" + "a" * limits.SOURCE_POINTER_CHARS_MAX}}, "type.body"),
        ({"type": {"header": ""}}, "type.header"),
        ({"type": {"value": {"a": 1}}}, "type.value"),
        ({"type": {"join": []}}, "type.join"),
        ({"type": {"join": PARTS}}, "type.join"),
        ({"type": {"join": [{}]}}, "type.join.0"),
        ({"type": {"join": [{"join": [{"value": 1}]}]}}, "type.join.0.join"),
        ({"attributes": {"a": {}}}, "attributes.a"),
        ({"attributes": TOO_MANY}, "attributes"),
    ],
)
def test_a_map_that_is_none_is_refused_with_its_field(mapping: Any, field: str | None) -> None:
    with pytest.raises(EventHubError) as caught:
        parse_map(mapping)
    assert (caught.value.status, caught.value.field) == (400, field)


def test_a_body_that_is_not_json_is_refused() -> None:
    with pytest.raises(MalformedJson):
        mapped({}, request(b"{"))


@pytest.mark.parametrize(
    ("body", "media", "kept"),
    [
        (b'{ "type" : "x" }', "application/json; charset=utf-8", "application/json"),
        (b'{"type": "x"}', "application/vnd.api+json", "application/json"),
        (b"type=x", FORM, FORM),
        (b"\xff\x00", "", "application/octet-stream"),
    ],
)
def test_the_raw_body_is_the_body_of_the_event(body: bytes, media: str, kept: str) -> None:
    from eventhub.event import protobuf_codec
    from eventhub.event.inbound import stored_bytes

    source = MappedSource("shop", "hmac", parse_map({}))
    event = event_of(source, request(body, media))
    stored = protobuf_codec.decode(stored_bytes(event, client="c", mask=1))
    assert (stored.body, stored.content_type, stored.node) == (body, kept, "shop")
