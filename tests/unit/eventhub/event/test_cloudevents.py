"""CloudEvents 1.0: carried fields survive a round trip, and the cloudevents library agrees."""

import base64
from typing import Any

import orjson
import pytest
from cloudevents.core.bindings.http import (
    HTTPMessage,
    from_http_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given

from eventhub.base import errors, limits
from eventhub.event import cloudevents
from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.inbound import EventIn, event_mask, stored_bytes
from eventhub.event.protobuf_codec import decode
from tests.unit.eventhub.event.strategies import events

PLACE = "0190a5b4-0000-7000-8000-000000000001:7"
MINIMAL = {"specversion": "1.0", "id": "a", "source": "/s", "type": "t"}


def taken(event: EventIn) -> Event:
    """Return the event as a hub stores it."""
    mask = event_mask(event)
    assert isinstance(mask, int)
    return decode(stored_bytes(event, client="c", mask=mask))


def from_message(message: cloudevents.Message) -> EventIn:
    """Read a message like the emit route."""
    headers = {name.lower(): text for name, text in message.headers}
    content_type = headers.pop("content-type", "")
    if content_type == cloudevents.STRUCTURED:
        return cloudevents.read_structured(message.body)
    own = {name.removeprefix("ce-"): text for name, text in headers.items()}
    return cloudevents.read_binary(own, content_type, message.body)


def emitted(event: Event) -> Event:
    """Return the event as a hub could have stored it: with a node, and without fields that need
    another.
    """
    return event._replace(
        id=None if event.id is None else event.id,
        node=event.node or "n",
        bundle_number=event.bundle_number if event.bundle else 0,
        tombstone=event.tombstone and bool(event.key),
        expires_at_us=event.expires_at_us,
        environment=event.environment or None,
    )


def expected(event: Event) -> dict[str, Any]:
    found = {name: getattr(event, name) for name in cloudevents.CARRIES}
    if isinstance(event.id, EventId):
        found["id"] = "-".join(
            map(str, (event.id.timestamp_us, event.id.incarnation, event.id.sequence))
        )
    elif event.id is None:
        found["id"] = PLACE
    if event.content_type == "application/json":
        found["body"] = orjson.dumps(orjson.loads(event.body or b""))
    return found


def carried(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in cloudevents.CARRIES}


@given(events())
def test_fields_of_structured_cloudevents_survive_a_round_trip(event: Event) -> None:
    event = emitted(event)
    again = taken(cloudevents.read_structured(cloudevents.structured(event, PLACE)))
    assert carried(again) == expected(event)


@given(events())
def test_fields_of_binary_cloudevents_survive_a_round_trip(event: Event) -> None:
    event = emitted(event)
    again = taken(from_message(cloudevents.binary(event, PLACE)))
    assert carried(again) == expected(event)


def test_every_field_is_carried_or_known_to_be_dropped() -> None:
    assert set(Event._fields) - cloudevents.CARRIES == {"source", "filterable_data"}


EVENT = Event(
    "shop",
    "order.placed",
    {"customer": 17, "vip": True, "city": "Zürich", "total": 99.5, "lines": [1, 2]},
    id="o-1",
    node="till 7",
    body=b'{"a":1}',
    content_type="application/json",
    key="order/1",
    time_us=1_767_225_600_000_000,
    correlation="c1",
    priority=3,
)


def test_the_cloudevents_library_reads_our_output() -> None:
    binary = cloudevents.binary(EVENT, PLACE)
    structured = HTTPMessage(
        {"Content-Type": cloudevents.STRUCTURED}, cloudevents.structured(EVENT, PLACE)
    )
    for message in (HTTPMessage(dict(binary.headers), binary.body), structured):
        read = from_http_event(message)
        assert (read.get_id(), read.get_source(), read.get_type()) == (
            "o-1",
            "till%207",
            EVENT.type,
        )
        assert (read.get_subject(), read.get_extension("domain")) == ("order/1", "shop")
        assert read.get_extension("city") == "Zürich"
        assert str(read.get_extension("customer")) == "17"
        assert read.get_extension("correlationid") == "c1"
        when = read.get_time()
        assert when is not None
        assert when.timestamp() == 1_767_225_600
        assert read.get_data() == {"a": 1}


@pytest.mark.parametrize(
    ("data", "content_type"),
    [({"n": 1}, "application/json"), ("text", "text/plain"), (b"\x00\x01", "image/png")],
)
def test_we_read_the_output_of_the_cloudevents_library(data: Any, content_type: str) -> None:
    made = CloudEvent(
        attributes={
            "id": "1",
            "source": "urn:till:7",
            "type": "com.example.order",
            "subject": "o 1",
            "datacontenttype": content_type,
            "comexampleplace": "Zürich",
        },
        data=data,
    )
    for write in (to_binary_event, to_structured_event):
        message = write(made)
        event = taken(from_message(cloudevents.Message([*message.headers.items()], message.body)))
        assert (event.domain, event.type) == ("cloudevents", "com.example.order")
        assert (event.id, event.node, event.key) == ("1", "urn:till:7", "o 1")
        assert event.attributes["comexampleplace"] == "Zürich"
        assert event.content_type == content_type
        body = event.body or b""
        if isinstance(data, dict):
            assert orjson.loads(body) == data
        else:
            assert body == (data.encode() if isinstance(data, str) else data)


BAD: list[tuple[dict[str, Any], type[errors.EventHubError], str]] = [
    ({"specversion": "0.3"}, errors.InvalidField, "specversion"),
    ({"id": None}, errors.MissingField, "id"),
    ({"id": ""}, errors.InvalidField, "id"),
    ({"id": 5}, errors.InvalidField, "id"),
    ({"source": None}, errors.MissingField, "source"),
    ({"type": None}, errors.MissingField, "type"),
    ({"time": "yesterday"}, errors.InvalidField, "time"),
    ({"Upper": "x"}, errors.UnknownField, "Upper"),
    ({"ext": {"a": 1}}, errors.InvalidField, "ext"),
    ({"ext": 1.5}, errors.InvalidField, "ext"),
    ({"ehpriority": "high"}, errors.InvalidField, "ehpriority"),
    ({"ehpriority": 5000}, errors.InvalidField, "ehpriority"),
    ({"ehattributes": "[1]"}, errors.InvalidField, "ehattributes"),
    ({"data": 1, "data_base64": "AA=="}, errors.InvalidField, "data"),
    ({"data_base64": 5}, errors.InvalidField, "data_base64"),
    ({"data_base64": "*"}, errors.InvalidField, "body_base64"),
    ({"datacontenttype": "text/plain"}, errors.MissingField, "data"),
    ({"datacontenttype": 5}, errors.InvalidField, "datacontenttype"),
    ({"subject": "x" * (limits.TEXT_CHARS_MAX + 1)}, errors.FieldTooLong, "subject"),
    ({"domain": ""}, errors.InvalidField, "domain"),
]


@pytest.mark.parametrize(("fields", "error", "field"), BAD)
def test_a_bad_event_is_refused_at_its_field(
    fields: dict[str, Any], error: type[errors.EventHubError], field: str
) -> None:
    bad = {**MINIMAL, **fields}
    with pytest.raises(error) as caught:
        taken(cloudevents.read_structured(orjson.dumps(bad)))
    assert caught.value.field == field


def test_an_invalid_event_of_a_batch_is_reported_by_index() -> None:
    batch = [MINIMAL, {**MINIMAL, "type": ""}]
    with pytest.raises(errors.InvalidField) as caught:
        cloudevents.read_batch(orjson.dumps(batch))
    assert (caught.value.index, caught.value.field) == (1, "type")
    assert [event.id for event in cloudevents.read_batch(orjson.dumps([MINIMAL] * 2))] == ["a", "a"]


def test_big_whole_numbers_are_not_rounded() -> None:
    body = b'{"specversion":"1.0","id":"a","source":"/","type":"t","data":18446744073709551616}'
    with pytest.raises(errors.NumberOutOfRange):
        taken(cloudevents.read_structured(body))


def test_a_type_that_resembles_json_stays_bytes() -> None:
    """The body once was copied into the JSON of the event."""
    event = EVENT._replace(body=b'1},"forged":{"a":1', content_type="application/json; v=1")
    shown = orjson.loads(cloudevents.structured(event, PLACE))
    assert base64.b64decode(shown["data_base64"]) == event.body
    assert "forged" not in shown


def test_numbers_in_json_of_another_media_type_are_not_rounded() -> None:
    body = (
        b'{"specversion":"1.0","id":"a","source":"/","type":"t",'
        b'"datacontenttype":"application/x+json","data":18446744073709551616}'
    )
    with pytest.raises(errors.NumberOutOfRange):
        cloudevents.read_structured(body)


def test_a_body_of_type_json_must_be_json() -> None:
    headers = {"specversion": "1.0", "id": "a", "source": "/", "type": "t"}
    with pytest.raises(errors.MalformedJson):
        cloudevents.read_binary(headers, "application/json", b"{")


def test_an_event_too_large_for_headers_is_structured() -> None:
    large = EVENT._replace(attributes={"text": "x" * limits.CE_HEADERS_BYTES_MAX})
    injected = EVENT._replace(body=b"x", content_type="a/b\r\nx: y")
    for event in (large, injected):
        message = cloudevents.binary(event, PLACE)
        assert message.headers == [("Content-Type", cloudevents.STRUCTURED)]
        assert taken(from_message(message)).attributes == event.attributes


def test_an_event_without_a_domain_has_the_domain_cloudevents() -> None:
    event = taken(cloudevents.read_structured(orjson.dumps(MINIMAL)))
    assert event.domain == "cloudevents"
    assert orjson.loads(cloudevents.structured(event, PLACE)) == MINIMAL


def test_json_of_another_media_type_is_bytes() -> None:
    given_event = {**MINIMAL, "datacontenttype": "application/vnd.x+json", "data": {"a": 1}}
    event = taken(cloudevents.read_structured(orjson.dumps(given_event)))
    assert (event.content_type, event.body) == ("application/vnd.x+json", b'{"a":1}')
    shown = orjson.loads(cloudevents.structured(event, PLACE))
    assert base64.b64decode(shown["data_base64"]) == b'{"a":1}'
