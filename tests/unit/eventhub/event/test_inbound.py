"""Events that are refused because readers could not be given them."""

import base64
from typing import Any

import orjson
import pytest

from eventhub.base import errors
from eventhub.event.inbound import JSON, NDJSON, from_objects, parse, stored_bytes
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode

EVENT = {"domain": "d", "type": "t"}


def shown(**fields: Any) -> dict[str, Any]:
    """Return the JSON that readers get of an event given with these fields."""
    [event] = from_objects([{**EVENT, **fields}])
    found: dict[str, Any] = orjson.loads(
        event_json(decode(stored_bytes(event, client="c", mask=1)))
    )
    return found


@pytest.mark.parametrize(
    ("given", "utc"),
    [
        ("2026-11-21T10:00:00.5+02:00", "2026-11-21T08:00:00.500000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
        ("0999-06-01T00:00:00Z", "0999-06-01T00:00:00.000000Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
@pytest.mark.parametrize("field", ["time", "expires_at"])
def test_a_time_comes_back_in_utc_with_four_digits_of_year(
    field: str, given: str, utc: str
) -> None:
    assert shown(**{field: given})[field] == utc


@pytest.mark.parametrize("given", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
@pytest.mark.parametrize("field", ["time", "expires_at"])
def test_a_time_that_only_its_offset_puts_out_of_range_is_refused(field: str, given: str) -> None:
    """Once such an event was stored, every JSON reader of its stream failed at it."""
    with pytest.raises(errors.InvalidField) as caught:
        shown(**{field: given})
    assert caught.value.field == field


@pytest.mark.parametrize("body", [b"{", b'1},"forged":{"a":1', b"\xff", b"", b"NaN", b"[1] [2]"])
def test_bytes_of_type_json_must_be_json(body: bytes) -> None:
    """Once stored, they broke the frames of JSON readers or added forged fields to them."""
    with pytest.raises(errors.InvalidField) as caught:
        shown(body_base64=base64.b64encode(body).decode(), content_type=JSON)
    assert caught.value.field == "body_base64"


@pytest.mark.parametrize(
    ("body", "error"),
    [(b"[" * 33 + b"]" * 33, errors.TooDeep), (b"[" * 5000, errors.InvalidField)],
)
def test_json_bytes_have_the_depth_of_any_json(
    body: bytes, error: type[errors.EventHubError]
) -> None:
    with pytest.raises(error):
        shown(body_base64=base64.b64encode(body).decode(), content_type=JSON)


@pytest.mark.req("OIF-15")
@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"$ref": "urn:x"}, "$ref"),
        ({"$ref": "urn:x", "n": 1}, "$ref"),
        ({"o": {"$ref": "urn:x"}, "o.$ref": "nope"}, "o.$ref"),
    ],
)
def test_an_attribute_takes_no_place_of_a_reference(attributes: dict[str, Any], name: str) -> None:
    with pytest.raises(errors.InvalidField) as caught:
        shown(attributes=attributes)
    assert caught.value.field == f"attributes.{name}"


def test_lines_are_events_and_an_error_has_its_index() -> None:
    good = orjson.dumps(EVENT)
    assert len(parse(b"\n" + good + b"\r\n\n" + good, NDJSON)) == 2
    with pytest.raises(errors.MissingField) as caught:
        parse(good + b"\n" + b'{"domain":"d"}', NDJSON)
    assert (caught.value.index, caught.value.field) == (1, "type")


@pytest.mark.parametrize("field", ["hop_limit", "liveness", "stream"])
def test_fields_the_hub_does_not_serve_yet_are_unknown(field: str) -> None:
    with pytest.raises(errors.UnknownField) as caught:
        shown(**{field: 1})
    assert (caught.value.index, caught.value.field) == (0, field)
