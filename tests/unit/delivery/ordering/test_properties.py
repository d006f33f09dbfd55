"""Each order under random reading, acknowledgements, expiry and reconnects: nothing that matches is
lost, nothing acknowledged comes again, and nothing leaves the promised order without being counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.ordering.held import HeldEvent
from delivery.ordering.queue import DeliveryQueue, QueueLimits
from eventhub.event.identity import EventId
from eventhub.eventlog.stored import StoredEvent
from tests.unit.delivery.ordering.held_events import NOW_US, START, settings, stored

STREAMS = ("s", "t")
OPTIONS: dict[str, dict[str, Any]] = {
    "type": {"types": ["b", "a.*"]},
    "timestamp": {"occur_delay_ms": 5, "hold_ms": 50},
    "causal": {"hold_ms": 20},
}
END_US = NOW_US + 10_000_000

times = st.integers(NOW_US - 20_000, NOW_US + 20_000)
links = st.sampled_from(["", *(f"e{number}" for number in range(14))])
fields = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["a", "a.x", "b", "c"]),
        "source": st.sampled_from(["p", "q"]),
        "priority": st.integers(-2, 2),
        "expires_at_us": st.just(0) | times,
        "time_us": st.just(0) | times,
        "cause": links,
        "correlation": links,
    }
)
drafts = st.lists(
    st.tuples(st.sampled_from(STREAMS), fields, st.integers(1, 4), st.booleans()), max_size=12
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.sampled_from(STREAMS), st.integers(1, 4)),
        st.tuples(st.just("pop"), st.integers(1, 4), st.just(0)),
        st.tuples(st.just("ack"), st.sampled_from(STREAMS), st.integers(1, 12)),
        st.tuples(st.just("ack one"), st.sampled_from(STREAMS), st.integers(1, 12)),
        st.tuples(st.just("wait"), st.integers(1, 20_000), st.just(0)),
        st.tuples(st.just("reconnect"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@dataclass
class Consumer:
    """A session that reads a log of two streams, over as many connections as it takes."""

    order: str
    log: dict[str, list[tuple[StoredEvent, bool]]]
    bounds: QueueLimits
    window: int
    now_us: int = NOW_US
    saved: dict[str, Any] = field(default_factory=lambda: {s: (START, []) for s in STREAMS})
    acknowledged: set[tuple[str, int]] = field(default_factory=set)
    delivered: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        self.queue = DeliveryQueue(
            settings(self.order, **OPTIONS.get(self.order, {})), self.window, self.bounds
        )
        for stream, (cursor, acknowledged) in self.saved.items():
            self.queue.add_stream(stream, cursor, acknowledged)
        self.at = {stream: cursor.sequence for stream, (cursor, _) in self.saved.items()}
        self.held: dict[tuple[str, int], StoredEvent] = {}  # put on this connection, not delivered
        self.sent: list[HeldEvent] = []  # on this connection
        self._note_behind()

    def _note_behind(self) -> None:
        for stream in STREAMS:
            self.queue.set_behind(stream, self.at[stream] < len(self.log[stream]))

    def reconnect(self, *_: int) -> None:
        self.saved = {stream: self.queue.position(stream) for stream in STREAMS}
        for stream, (cursor, acknowledged) in self.saved.items():
            self._check_position(stream, cursor.sequence, acknowledged)
        for stream in STREAMS:
            self.queue.remove_stream(stream)
        self.connect()

    def _check_position(self, stream: str, sequence: int, acknowledged: list[int]) -> None:
        """Check that everything that matches up to a position was acknowledged or had expired."""
        for event, matches in self.log[stream][:sequence]:
            done = (stream, event.sequence) in self.acknowledged
            expired = 0 < event.event.expires_at_us <= self.now_us
            assert done or expired or not matches
        assert {(stream, each) for each in acknowledged} <= self.acknowledged

    def read(self, stream: str, count: int) -> None:
        for event, matches in self.log[stream][self.at[stream] :][:count]:
            if self.queue.full:
                break
            self.at[stream] += 1
            if matches or self.queue.needs_all:
                self.queue.put(stream, event, self.now_us, matches=matches)
            else:
                self.queue.skip(stream, event.cursor)
            if matches and (stream, event.sequence) not in self.acknowledged:
                self.held[stream, event.sequence] = event
        self._note_behind()

    def pop(self, count: int, _: int = 0) -> bool:
        for _round in range(count):
            held = self.queue.pop(self.now_us)
            self.held = {
                key: event
                for key, event in self.held.items()
                if event.event.expires_at_us == 0 or event.event.expires_at_us > self.now_us
            }
            if held is None:
                return False
            self._check(held)
        return True

    def _check(self, held: HeldEvent) -> None:
        key = (held.stream, held.stored.sequence)
        assert held.matches
        assert key in self.held, "it was read, has not expired and was not delivered before"
        assert key not in self.acknowledged
        if not held.disorder:
            self._check_order(held)
        del self.held[key]
        self.sent.append(held)
        self.delivered.add(key)
        assert self.queue.unacknowledged <= self.window

    def _check_order(self, held: HeldEvent) -> None:
        key = KEYS.get(self.order)
        if key is not None:
            assert key(held.stored) == min(map(key, self.held.values()))
        elif self.order in ("none", "fifo"):
            later = [each for each in self.held if each[0] == held.stream]
            assert held.stored.sequence == min(sequence for _, sequence in later)
        elif self.order == "timestamp":
            assert time_of(held.stored) < self.now_us - 5_000
            assert time_of(held.stored) == min(map(time_of, self.held.values()))
        elif self.order == "causal":
            causes = {held.event.cause} - {held.event.id}
            waited = [each for each in self.held.values() if each.event.id in causes]
            assert not waited, "its cause is held"

    def acknowledge(self, stream: str, sequence: int) -> None:
        self.queue.acknowledge(stream, sequence)
        self.acknowledged |= {
            (each.stream, each.stored.sequence)
            for each in self.sent
            if each.stream == stream and each.stored.sequence <= sequence
        }

    def acknowledge_one(self, stream: str, sequence: int) -> None:
        self.queue.acknowledge_each(stream, [sequence])
        keys = {(each.stream, each.stored.sequence) for each in self.sent}
        self.acknowledged |= {(stream, sequence)} & keys

    def wait(self, microseconds: int, _: int = 0) -> None:
        self.now_us += microseconds

    def finish(self) -> None:
        """Deliver and acknowledge the rest."""
        self.now_us = max(self.now_us, END_US)
        for _round in range(200):
            for stream in STREAMS:
                self.read(stream, 100)
            while self.pop(1):
                pass
            for stream in STREAMS:
                self.acknowledge(stream, 100)


def time_of(event: StoredEvent) -> int:
    return event.event.time_us or event.appended_at_us


def supplier_key(event: StoredEvent) -> Any:
    id = event.event.id
    assert isinstance(id, EventId)
    return (event.event.source, id.incarnation, id.timestamp_us, id.sequence)


KEYS: dict[str, Any] = {
    "priority": lambda event: -event.event.priority,
    "validity": lambda event: event.event.expires_at_us or 1 << 62,
    "supplier": supplier_key,
    "type": lambda event: (
        (["b", "a.x"].index(event.event.type), "")
        if event.event.type in ("b", "a.x")
        else (2, event.event.type)
    ),
}


@pytest.mark.parametrize(
    "order",
    ["none", "fifo", "priority", "validity", "supplier", "type", "timestamp", "causal"],
)
@given(drafts=drafts, actions=actions, events=st.integers(1, 14), window=st.integers(1, 5))
def test_nothing_is_lost_repeated_or_out_of_order(
    order: str, drafts: list[Any], actions: list[Any], events: int, window: int
) -> None:
    log: dict[str, list[tuple[StoredEvent, bool]]] = {stream: [] for stream in STREAMS}
    for number, (stream, chosen, incarnation, matches) in enumerate(drafts):
        id = EventId(chosen["source"], 1, number + 1, incarnation)
        values = chosen | {"id": id if order == "supplier" else f"e{number}"}
        log[stream].append((stored(len(log[stream]) + 1, **values), matches))
    consumer = Consumer(order, log, QueueLimits(events=events), window)
    calls: dict[str, Callable[[Any, Any], object]] = {
        "read": consumer.read,
        "pop": consumer.pop,
        "ack": consumer.acknowledge,
        "ack one": consumer.acknowledge_one,
        "wait": consumer.wait,
        "reconnect": consumer.reconnect,
    }
    for name, first, second in actions:
        calls[name](first, second)
    consumer.finish()
    for stream, events_of_stream in log.items():
        assert consumer.queue.cursor(stream).sequence == len(events_of_stream)
        for event, matches in events_of_stream:
            expired = 0 < event.event.expires_at_us <= consumer.now_us
            key = (stream, event.sequence)
            assert (key in consumer.delivered) == matches or expired
