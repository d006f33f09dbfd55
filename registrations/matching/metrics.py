"""Tells what matchers do as metrics: by stream, by strategy, and by kind of work. Plain module."""

from dataclasses import asdict

from eventhub.base import limits, metrics
from registrations.matching.matcher import Counters

OTHER = "other"


class Labels:
    """Streams with a label of their own, the first that come; beyond the bound they share one."""

    def __init__(self) -> None:
        self._labelled: set[int] = set()

    def of(self, stream_id: int) -> str:
        if stream_id not in self._labelled:
            if len(self._labelled) >= limits.FORWARD_STREAMS_LABELLED_MAX:
                return OTHER
            self._labelled.add(stream_id)
        return str(stream_id)


class Work:
    """What of one matcher's work was told; the counters of metrics are added to seldom, because
    that costs more than to match an event. `told`: what was told already, of an earlier strategy.
    """

    def __init__(self, strategy: str, told: Counters | None = None) -> None:
        self.strategy = strategy
        self._told = told or Counters()

    def tell(self, stream: str, counters: Counters) -> None:
        """Add what is new since the last time."""
        told = asdict(self._told)
        for work, count in asdict(counters).items():
            if count > told[work]:
                metrics.MATCH_WORK.labels(stream=stream, strategy=self.strategy, work=work).inc(
                    count - told[work]
                )
        self._told = Counters(**asdict(counters))
