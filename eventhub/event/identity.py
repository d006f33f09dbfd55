"""Producers' event ids, unique in space and time (FOX-07 to FOX-09), and tags. Plain module."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from eventhub.base.clock import Clock

SEQUENCE_MAX = 2**31 - 1  # ids between two readings of the clock
_SPREAD = 0x9E3779B97F4A7C15  # odd: times that differ by little give numbers that are far apart
_INT63 = (1 << 63) - 1


def stored_incarnation(incarnation: int, timestamp_us: int) -> int:
    """Return the incarnation under which the log keeps a client's numbers. It combines both values,
    because an issuer restarts its sequence with each timestamp (FOX-08). Without a timestamp it is
    the incarnation itself.
    """
    if not timestamp_us:
        return incarnation
    return (incarnation + timestamp_us * _SPREAD) & _INT63


class EventId(NamedTuple):
    """A producer's id of an event. Compare with `order`, not with `<`: tuples compare the client
    first.
    """

    client: str
    timestamp_us: int
    sequence: int
    incarnation: int

    @property
    def order(self) -> tuple[int, int]:
        """The order among ids of one producer: by timestamp, then by sequence (FOX-09; decisions
        10).
        """
        return (self.timestamp_us, self.sequence)

    def wire(self) -> dict[str, Any]:
        """Return the id as an emit request has it; the hub adds the key's client."""
        return {
            "timestamp": self.timestamp_us,
            "sequence": self.sequence,
            "incarnation": self.incarnation,
        }


class IdIssuer:
    """Issues the ids of one producer. Not thread-safe: use one issuer for each producer.

    The timestamp is taken at the start and again after `sequence_max` ids, when the sequence
    restarts at 1 (FOX-08). It always rises, so ids within one tick of the clock differ, and a clock
    that was set back reuses none. The incarnation must rise with each start; the clock at the start
    is a good choice.
    """

    def __init__(
        self,
        *,
        client: str,
        clock: Clock,
        incarnation: int | None = None,
        sequence_max: int = SEQUENCE_MAX,
    ) -> None:
        self._client = client
        self._clock = clock
        self._sequence_max = sequence_max
        self._timestamp_us = clock.now_us()
        self._incarnation = self._timestamp_us if incarnation is None else incarnation
        self._sequence = 0

    def next(self) -> EventId:
        if self._sequence == self._sequence_max:
            self._timestamp_us = max(self._clock.now_us(), self._timestamp_us + 1)
            self._sequence = 0
        self._sequence += 1
        return EventId(self._client, self._timestamp_us, self._sequence, self._incarnation)


def signature(names: Iterable[str]) -> str:
    """Return 32 hexadecimal digits that depend on the names of an event's top-level attributes, in
    any order. Values do not count: events with the same tags have one signature.
    """
    return hashlib.sha256(orjson.dumps(sorted(names))).hexdigest()[:32]
