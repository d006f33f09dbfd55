"""The metrics of matchers, by stream, strategy and kind of work. Plain module."""

from dataclasses import asdict

from eventhub.base import limits, metrics
from registrations.matching.matcher import Counters

OTHER = "other"
LISTENERS = "listeners"  # label `stream` of the work for all listeners and sessions


class StreamLabels:
    """Metric labels of streams: the first streams have their own, the others share one."""

    def __init__(self) -> None:
        self._labelled: set[int] = set()

    def of(self, stream_id: int) -> str:
        if stream_id not in self._labelled:
            if len(self._labelled) >= limits.FORWARD_STREAMS_LABELLED_MAX:
                return OTHER
            self._labelled.add(stream_id)
        return str(stream_id)


class ReportedWork:
    """The work of one matcher that the metrics already include. They are updated seldom, because an
    update costs more than matching an event. `reported`: the work reported under an earlier
    strategy.
    """

    def __init__(self, strategy: str, reported: Counters | None = None) -> None:
        self.strategy = strategy
        self._reported = reported or Counters()

    def report(self, stream: str, counters: Counters) -> None:
        """Add the work since the last report to the metrics."""
        reported = asdict(self._reported)
        for work, count in asdict(counters).items():
            if count > reported[work]:
                metrics.MATCH_WORK.labels(stream=stream, strategy=self.strategy, work=work).inc(
                    count - reported[work]
                )
        self._reported = Counters(**asdict(counters))
