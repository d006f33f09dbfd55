"""Stored events with chosen fields, and queues of them, for the tests of orders."""

from typing import Any

from delivery.ordering.options import OrderSettings, order_settings
from delivery.ordering.queue import DeliveryQueue
from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.eventlog.stored import Cursor, StoredEvent

SEGMENT = "5f1c1a52-7c1f-4b33-9f0e-0d6a4f0f2b11"
START = Cursor(SEGMENT, 0)
NOW_US = 1_000_000_000
MS = 1_000


def stored(sequence: int, *, appended_at_us: int = NOW_US, **fields: Any) -> StoredEvent:
    fields = {"domain": "d", "type": "t", "attributes": {}} | fields
    event = Event(**fields)
    return StoredEvent(SEGMENT, sequence, event.mask, appended_at_us, protobuf_codec.encode(event))


def numbered(source: str, sequence: int, incarnation: int = 1, timestamp_us: int = 1) -> EventId:
    return EventId(source, timestamp_us, sequence, incarnation)


def queue_of(order: Any, window: int = 1_000, /, **options: Any) -> DeliveryQueue:
    queue = DeliveryQueue(order_settings(order, options), window)
    queue.add_stream("s", START)
    return queue


def settings(order: Any, **options: Any) -> OrderSettings:
    return order_settings(order, options)


def drain(queue: DeliveryQueue, now_us: int = NOW_US) -> list[int]:
    """Take what is due; return the sequences."""
    found = []
    while (held := queue.pop(now_us)) is not None:
        found.append(held.stored.sequence)
    return found
