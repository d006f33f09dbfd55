"""What a session promises of its connections: nothing lost, nothing acknowledged again, and the
order. The judge of `tests.chaos sessions`; it shares no code with the hub's queues.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.chaos.sessions.consumer import Connection, Consumer, Received
from tests.chaos.sessions.flow import Emitted, Key

NEVER_US = 1 << 62
Events = Mapping[Key, Emitted]

# by order: the key by which everything that is held is sorted
SORTED: dict[str, Callable[[Emitted], Any]] = {
    "priority": lambda event: -event.priority,
    "validity": lambda event: event.expires_us or NEVER_US,
    "supplier": lambda event: event.number,
    "type": lambda event: event.type,
    "timestamp": lambda event: event.time_us,
}
LASTING = ("supplier", "timestamp")  # orders that hold for what is emitted meanwhile, too


def problems_of(consumer: Consumer, events: Events) -> list[str]:
    """Return what is wrong with the connections of a session so far."""
    name, order = consumer.plan.name, consumer.plan.order
    return [
        f"{name}, connection {number}: {problem}"
        for number, connection in enumerate(consumer.connections, 1)
        for problem in connection_problems(connection, order, events)
    ]


def connection_problems(connection: Connection, order: str, events: Events) -> Iterator[str]:
    """Yield what is wrong with one connection."""
    keys = [each.key for each in connection.received]
    if len(set(keys)) < len(keys):
        yield f"{len(keys) - len(set(keys))} events came twice"
    if again := connection.stored & set(keys):
        yield f"{len(again)} acknowledged events came again: {sorted(again)[:3]}"
    for each in connection.received:
        event = events.get(each.key)
        if event is None or event.number != each.number:
            yield f"{each.key} is {each.number}, but {event} was emitted"
        elif 0 < event.expires_us < connection.began_us:
            yield f"{each.key} had expired before"
    yield from _disorder(connection, order, events)


def missing(consumer: Consumer, connection: Connection, events: Events, end_us: int) -> list[Key]:
    """Return what a connection that received everything held should have received, and did not:
    all that is not acknowledged and has not expired.
    """
    received = {each.key for each in connection.received}
    return sorted(
        key
        for key in events.keys() - consumer.acknowledged - received
        if not 0 < events[key].expires_us <= end_us
    )


def _disorder(connection: Connection, order: str, events: Events) -> Iterator[str]:
    """Yield events that are out of the promised order and do not say so."""
    if order == "causal":
        yield from _effects_first(connection.received, events)
        return
    in_order = [each for each in connection.received if not each.reason]
    if order in ("none", "fifo"):
        for stream in {stream for stream, _ in events}:
            found = [each.key[1] for each in in_order if each.key[0] == stream]
            yield from _inversions(found, order)
    elif connection.quiet or order in LASTING:
        key = SORTED[order]
        yield from _inversions([key(events[each.key]) for each in in_order], order)


def _inversions(found: Sequence[Any], order: str) -> Iterator[str]:
    for before, after in itertools.pairwise(found):
        if after < before:
            yield f"{after} came after {before} in the order {order}"
            return


def _effects_first(received: Sequence[Received], events: Events) -> Iterator[str]:
    """Yield an event that came before the one that it names, if both came on the connection."""
    places = {each.number: place for place, each in enumerate(received)}
    for place, each in enumerate(received):
        if not each.reason and places.get(events[each.key].cause, -1) > place:
            yield f"{each.number} came before its cause {events[each.key].cause}"
            return
