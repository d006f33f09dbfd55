"""The lag of a forwarder's streams as metrics with a bounded number of labels. Plain module."""

from collections.abc import Iterable
from typing import NamedTuple

from eventhub.base import metrics
from registrations.matching.metrics import StreamLabels


class StreamLag(NamedTuple):
    """The lag of a stream. `since_us`: when the first unmatched event was appended; 0: none."""

    stream_id: int
    events: int
    since_us: int


class Lag:
    """The labels in use. Beyond their bound streams share a label, which shows the largest lag."""

    def __init__(self) -> None:
        self._labels = StreamLabels()
        self._shown: dict[str, tuple[int, float]] = {}  # events and seconds, by label

    def update(self, lags: Iterable[StreamLag], now_us: int) -> None:
        """Set the gauges; a stream that is no longer held shows 0."""
        found = dict.fromkeys(self._shown, (0, 0.0))
        for lag in lags:
            label = self._labels.of(lag.stream_id)
            seconds = max(now_us - lag.since_us, 0) / 1_000_000 if lag.since_us else 0.0
            events, longest_s = found.get(label, (0, 0.0))
            found[label] = (max(events, lag.events), max(longest_s, seconds))
        for label, (events, seconds) in found.items():
            if self._shown.get(label) == (events, seconds):
                continue
            metrics.FORWARD_LAG_EVENTS.labels(stream=label).set(events)
            metrics.FORWARD_LAG_S.labels(stream=label).set(seconds)
        self._shown = found
