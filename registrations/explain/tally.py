"""The counts of a dry run over time, in a bounded number of buckets, and samples of the matching
events. Plain module.
"""

from collections import deque
from typing import Annotated, NamedTuple, TypedDict

import orjson
from msgspec import Meta

from eventhub.base import limits
from eventhub.event.json_codec import EventJson, event_json, time_text
from eventhub.event.json_types import Int64, Time
from eventhub.eventlog.stored import CursorJson, StoredEvent

_MS, _S = 1_000, 1_000_000  # µs
_HOUR, _DAY = 3_600 * _S, 86_400 * _S
# the widths of buckets, each a multiple of the previous one; further widths double
_WIDTHS_US = (
    *(_MS, 10 * _MS, 100 * _MS, _S, 5 * _S, 15 * _S, 60 * _S, 300 * _S, 900 * _S),
    *(_HOUR, 3 * _HOUR, 6 * _HOUR, _DAY, 7 * _DAY, 28 * _DAY),
)


class SeriesJson(TypedDict):
    """Counts over time, one for each bucket."""

    begins_at: Time | None
    width_s: Annotated[float, Meta(description="Width of a bucket in seconds.")]
    looked_at: list[int]
    matched: list[int]


class CountsJson(TypedDict):
    """The counts of a run so far."""

    looked_at: Int64
    matched: Int64
    series: SeriesJson


class SampleJson(CursorJson):
    """An event that matched."""

    appended_at: Time
    event: Annotated[EventJson, Meta(description="Without its body.")]


class SamplesJson(TypedDict):
    """The first and the last matching events."""

    first: list[SampleJson]
    last: list[SampleJson]


class TallyJson(CountsJson):
    """The counts and samples of a run. `rate_per_hour` is null if all events have the same time."""

    rate_per_hour: float | None
    samples: SamplesJson


class Bucket:
    """The counts of events appended within one bucket of time."""

    __slots__ = ("looked_at", "matched")

    def __init__(self, looked_at: int = 0, matched: int = 0) -> None:
        self.looked_at = looked_at
        self.matched = matched


class Series:
    """Buckets of equal width; the width grows when there are too many buckets."""

    def __init__(self, buckets_max: int = limits.DRY_RUN_BUCKETS_MAX) -> None:
        self.width_us = _WIDTHS_US[0]
        self._max = buckets_max
        self._buckets: dict[int, Bucket] = {}  # by number
        self._first = 0
        self._last = -1

    def add(self, time_us: int, *, matched: bool) -> None:
        number = time_us // self.width_us
        bucket = self._buckets.get(number)
        if bucket is None:
            self._make_room(number)
            number = time_us // self.width_us
            bucket = self._buckets.setdefault(number, Bucket())
        bucket.looked_at += 1
        bucket.matched += matched

    def json(self) -> SeriesJson:
        """Return all buckets from the first to the last, including empty ones."""
        found = [
            self._buckets.get(number, Bucket()) for number in range(self._first, self._last + 1)
        ]
        return {
            "begins_at": time_text(self._first * self.width_us) if found else None,
            "width_s": self.width_us / _S,
            "looked_at": [bucket.looked_at for bucket in found],
            "matched": [bucket.matched for bucket in found],
        }

    def _make_room(self, number: int) -> None:
        if not self._buckets:
            self._first = self._last = number
            return
        first, last = min(self._first, number), max(self._last, number)
        while last - first >= self._max:
            times = self._widen()
            first, last = first // times, last // times
        self._first, self._last = first, last

    def _widen(self) -> int:
        """Widen the buckets and return by which factor."""
        wider = next((one for one in _WIDTHS_US if one > self.width_us), 2 * self.width_us)
        times = wider // self.width_us
        merged: dict[int, Bucket] = {}
        for number, bucket in self._buckets.items():
            into = merged.setdefault(number // times, Bucket())
            into.looked_at += bucket.looked_at
            into.matched += bucket.matched
        self._buckets, self.width_us = merged, wider
        return times


class MatchedSample(NamedTuple):
    """An event that matched."""

    stored: StoredEvent

    def json(self) -> SampleJson:
        """Return the event without its body, which filters do not evaluate."""
        stored = self.stored
        event = stored.event._replace(body=None, content_type="")
        return {
            **stored.cursor.json(),
            "appended_at": time_text(stored.appended_at_us),
            "event": orjson.loads(event_json(event)),
        }


class Tally:
    """The counts of one dry run."""

    def __init__(self, samples: int) -> None:
        self.looked_at = 0
        self.matched = 0
        self.series = Series()
        self._samples = samples
        self._first: list[MatchedSample] = []
        self._last: deque[MatchedSample] = deque(maxlen=samples)
        self._span_us: tuple[int, int] | None = None  # times of the first and last event

    def add(self, stored: StoredEvent, *, matched: bool) -> None:
        at_us = stored.appended_at_us
        self._span_us = (at_us if self._span_us is None else self._span_us[0], at_us)
        self.looked_at += 1
        self.series.add(at_us, matched=matched)
        if not matched:
            return
        self.matched += 1
        if len(self._first) < self._samples:
            self._first.append(MatchedSample(stored))
        elif self._samples:
            self._last.append(MatchedSample(stored))

    def counts(self) -> CountsJson:
        """Return the progress."""
        return {"looked_at": self.looked_at, "matched": self.matched, "series": self.series.json()}

    def json(self) -> TallyJson:
        """Return the result."""
        span_us = 0 if self._span_us is None else self._span_us[1] - self._span_us[0]
        return {
            **self.counts(),
            "rate_per_hour": round(self.matched * _HOUR / span_us, 3) if span_us > 0 else None,
            "samples": {
                "first": [sample.json() for sample in self._first],
                "last": [sample.json() for sample in self._last],
            },
        }
