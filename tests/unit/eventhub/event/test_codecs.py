"""The stored bytes and the JSON of an event: nothing is lost or changed."""

import base64
from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.inbound import from_objects, stored_bytes
from eventhub.event.json_codec import event_json, time_text
from eventhub.event.protobuf_codec import decode, encode
from tests.unit.eventhub.event.strategies import TEXT, TIMES_US, VALUES, events


@given(events())
def test_stored_bytes_survive_a_round_trip(event: Event) -> None:
    assert decode(encode(event)) == event


@given(events())
def test_json_represents_every_field(event: Event) -> None:
    shown = orjson.loads(event_json(event))
    assert (shown["domain"], shown["type"]) == (event.domain, event.type)
    assert shown["attributes"] == event.attributes
    assert int(shown["mask"]) == event.mask
    for name in ("source", "name", "version", "node", "key", "bundle", "correlation", "cause"):
        assert shown.get(name, "") == getattr(event, name)
    for name in ("summary", "merge_scheme", "order"):
        assert shown.get(name, "") == getattr(event, name)
    for name in ("bundle_number", "time_constraint_ms", "tombstone"):
        assert shown.get(name, 0) == getattr(event, name)
    assert tuple(shown.get("destinations", ())) == event.destinations
    assert tuple(shown.get("audience", ())) == event.audience
    assert shown.get("security_level", "med") == event.security_level
    assert tuple(shown.get("application", ())) == event.application
    assert tuple(shown.get("depends", ())) == event.depends
    assert shown.get("environment") == event.environment
    assert shown.get("priority", 0) == event.priority
    for name in ("time", "expires_at"):
        if name in shown:
            assert datetime.fromisoformat(shown[name]) == _moment(getattr(event, f"{name}_us"))
        else:
            assert getattr(event, f"{name}_us") == 0
    if event.body is None:
        assert not {"body", "body_base64", "content_type"} & set(shown)
    elif event.content_type == "application/json":
        assert shown["body"] == orjson.loads(event.body)
    else:
        assert base64.b64decode(shown["body_base64"]) == event.body
    if isinstance(event.id, EventId):
        made = shown["id"]
        assert EventId(
            made["client"], made["timestamp"], made["sequence"], made["incarnation"]
        ) == (event.id)
    else:
        assert shown.get("id") == event.id


def _moment(time_us: int) -> datetime:
    seconds, micros = divmod(time_us, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


@given(TIMES_US)
def test_a_time_is_written_so_that_texts_sort_like_times(time_us: int) -> None:
    text = time_text(time_us)
    assert len(text) == len("2026-11-21T08:00:00.000000Z")
    assert datetime.fromisoformat(text) == _moment(time_us)


@given(st.dictionaries(TEXT, VALUES, max_size=4), VALUES)
def test_readers_get_the_emitted_event(attributes: dict[str, Any], body: Any) -> None:
    given_event = {"domain": "d", "type": "t", "attributes": attributes, "body": body}
    [event] = from_objects([given_event])
    shown = orjson.loads(event_json(decode(stored_bytes(event, client="c", mask=7))))
    assert shown == {
        **given_event,
        "content_type": "application/json",
        "source": "c",
        "node": "c",
        "mask": "7",
    }


def test_the_stored_bytes_are_smaller_than_the_json() -> None:
    events = [
        Event("cluster", "resource group state", {"state": "online"}, source="c", node="c"),
        Event("d", "t", {}, id=EventId("shop", 1_767_225_600_000_000, 77, 1_767_225_000_000_000)),
        Event("d", "t", {"n": 1}, body=bytes(range(256)), content_type="image/png"),
        Event("d", "t", {}, time_us=1_767_225_600_000_000, priority=5, application=("a", "b")),
    ]
    for event in events:
        assert len(encode(event)) < len(event_json(event))
