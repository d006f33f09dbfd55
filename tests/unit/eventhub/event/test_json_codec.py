"""The type of an event's JSON names exactly the fields that are written."""

import msgspec
from hypothesis import given

from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.json_codec import EventJson, event_json
from tests.unit.eventhub.event.strategies import events

FULL = Event(
    *("shop", "order.placed", {"n": 1}, EventId("c", 1, 1, 1), "c", "n", "1", b"{}"),
    *("application/json", "n1", ("a",), {"e": "f"}, 1, 1, 1, 1, "k", "b", ("d",), "c", "c"),
    *("t", ("d",), ("s",), "high", "s", 1, 1, "m", True, "none"),
)


def test_every_field_of_the_type_is_written_and_every_written_one_is_in_it() -> None:
    written = {
        name
        for body in ("application/json", "text/plain")
        for name in msgspec.json.decode(event_json(FULL._replace(content_type=body)))
    }
    assert written == set(EventJson.__annotations__)


@given(events())
def test_the_json_output_conforms_to_its_type(event: Event) -> None:
    msgspec.json.decode(event_json(event), type=EventJson)
