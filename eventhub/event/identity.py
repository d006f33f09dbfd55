"""A producer's own id of an event, and the issuer that makes them: unique in space and time.
Plain module.

Source: FOX 4.2.2 (FOX-07, FOX-08, FOX-09).
"""

from typing import Any, NamedTuple

from eventhub.base.clock import Clock

SEQUENCE_MAX = 2**31 - 1  # ids between two looks at the clock
_SPREAD = 0x9E3779B97F4A7C15  # odd: times that differ by little give numbers that lie far apart
_INT63 = (1 << 63) - 1


def stored_incarnation(incarnation: int, timestamp_us: int) -> int:
    """Which numbers of a client are compared with one another: those of one incarnation and
    timestamp, since an issuer begins its sequence anew with each timestamp (FOX-08). Without a
    timestamp the incarnation alone counts.
    """
    if not timestamp_us:
        return incarnation
    return (incarnation + timestamp_us * _SPREAD) & _INT63


class EventId(NamedTuple):
    """(client, timestamp, sequence, incarnation).

    Compare with `order`, not with `<`: tuples compare the client first.
    """

    client: str
    timestamp_us: int
    sequence: int
    incarnation: int

    @property
    def order(self) -> tuple[int, int]:
        """Ids of one producer order by timestamp, then by sequence (FOX-09; decisions 10)."""
        return (self.timestamp_us, self.sequence)

    def wire(self) -> dict[str, Any]:
        """The id as it goes into an emit request; the hub adds the key's client."""
        return {
            "timestamp": self.timestamp_us,
            "sequence": self.sequence,
            "incarnation": self.incarnation,
        }


class IdIssuer:
    """Makes the ids of one producer. Not shared between threads: one issuer for one producer.

    The timestamp is taken at the start and again after `sequence_max` ids, when the sequence begins
    anew at 1 (FOX-08). It always rises, so that any number of ids within one tick of the clock all
    differ, and a clock set back reuses none. The incarnation must rise with each start; the clock
    at the start is a good one.
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
