"""The bounds of bodies that filters read as `data`, and their mark in the stored bytes."""

import base64
from typing import Any

import orjson
import pytest

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.event.filterable import filterable
from eventhub.event.inbound import from_objects, stored_bytes


def stored(*, policy: bool = True, **fields: Any) -> Event:
    [event] = from_objects([{"domain": "shop", "type": "order", **fields}])
    return protobuf_codec.decode(stored_bytes(event, client="crm", mask=1, filterable_data=policy))


def of_bytes(body: bytes, content_type: str) -> dict[str, Any]:
    return {"body_base64": base64.b64encode(body).decode(), "content_type": content_type}


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ({"body": {"total": 60}}, {"total": 60}),
        ({"body": None}, None),
        ({"body": [1, "x"]}, [1, "x"]),
        (of_bytes(b'{"a": 1}', "application/json"), {"a": 1}),
        (of_bytes(b'{"a": 1}', "Application/JSON; charset=utf-8"), {"a": 1}),
        (of_bytes(b'{"a": 1}', "application/vnd.github+json"), {"a": 1}),
    ],
)
def test_json_bodies_are_data(fields: dict[str, Any], data: Any) -> None:
    event = stored(**fields, attributes={"b": 2})
    assert filterable(event).attributes == {"b": 2, "data": data}
    assert event.attributes == {"b": 2}
    off = stored(policy=False, **fields, attributes={"b": 2})
    assert filterable(off) is off and not off.filterable_data


@pytest.mark.parametrize("fields", [{}, of_bytes(b"{}", "text/plain"), of_bytes(b"", "image/png")])
def test_other_bodies_are_not(fields: dict[str, Any]) -> None:
    event = stored(**fields)
    assert filterable(event) is event and not event.filterable_data


def values(count: int) -> dict[str, Any]:
    """Return an object with so many values, including the lists and the members in them."""
    return {"a": list(range(count - 1))}


def sized(size: int) -> dict[str, Any]:
    return {"a": "x" * (size - len(b'{"a":""}'))}


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("within", "beyond", "code"),
    [
        (values(limits.DATA_VALUES_MAX), values(limits.DATA_VALUES_MAX + 1), "field_too_long"),
        (sized(limits.DATA_BYTES_MAX), sized(limits.DATA_BYTES_MAX + 1), "field_too_long"),
        (nested(limits.JSON_DEPTH_MAX), nested(limits.JSON_DEPTH_MAX + 1), "too_deep"),
    ],
)
def test_the_bounds_of_data(within: Any, beyond: Any, code: str) -> None:
    """As a JSON value and as bytes; without the policy only the bounds of bodies apply."""
    for given in (
        lambda body: {"body": body},
        lambda body: of_bytes(orjson.dumps(body), "application/x+json"),
    ):
        assert stored(**given(within)).filterable_data
        with pytest.raises(EventHubError) as refused:
            stored(**given(beyond))
        assert (refused.value.code, refused.value.field) == (code, "body")
    assert code == "too_deep" or not stored(policy=False, body=beyond).filterable_data


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_field"),
        (b"\xff", "invalid_field"),
        (b'{"a": 100000000000000000000}', "number_out_of_range"),
    ],
)
def test_a_body_that_is_not_the_json_it_claims_to_be_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(EventHubError) as refused:
        stored(**of_bytes(body, "application/x+json"))
    assert (refused.value.code, refused.value.field) == (code, "body")
