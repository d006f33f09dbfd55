"""Server-sent events from bytes, however they are cut."""

import pytest
from eventhub_client.transports import EventStream, ServerSent

TEXT = (
    b'retry: 500\n\n: alive\n\nid: s:1\nevent: event\ndata: {"a": 1}\n\n'
    b"id: s:2\ndata: {\ndata:}\n\n"
)
EVENTS = [ServerSent("event", '{"a": 1}', "s:1"), ServerSent("message", "{\n}", "s:2")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(TEXT)])
def test_events_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    stream = EventStream()
    found = []
    for at in range(0, len(TEXT), size):
        found += stream.feed(TEXT[at : at + size])
    assert found == EVENTS


def test_an_event_that_is_cut_off_does_not_count() -> None:
    assert EventStream().feed(b"id: s:1\ndata: {}\n") == []


def test_lines_may_end_as_in_http_and_ids_last() -> None:
    found = EventStream().feed(b"id: s:9\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n")
    assert [(event.data, event.id) for event in found] == [("1", "s:9"), ("2", "s:9")]
