"""What a forwarder reports of its streams: metrics follow every change, and cost nothing without
one.
"""

from prometheus_client import REGISTRY

from delivery.forward.lag import Lag, StreamLag
from delivery.forward.metrics import update_metrics
from delivery.forward.stream_matcher import CallbackMatcher
from eventhub.base import metrics
from tests.unit.delivery.forward.test_stream_matcher import EVENT, SINCE, version

STREAM = 7_001


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"eventhub_{name}", {"stream": str(STREAM), **labels})


def test_the_lag_of_a_stream_rises_falls_and_is_gone_with_its_lease() -> None:
    lag = Lag()
    for events, since_us, now_us in (
        (3, 1_000_000, 3_000_000),
        (3, 1_000_000, 4_000_000),
        (0, 0, 5),
    ):
        lag.update([StreamLag(STREAM, events, since_us)], now_us)
        assert value("forward_lag_events") == events
        assert value("forward_lag_seconds") == ((now_us - since_us) / 1e6 if since_us else 0.0)
    lag.update([StreamLag(STREAM, 9, 0)], 6)
    lag.update([], 7)
    assert value("forward_lag_events") == 0


def test_metrics_of_matchers_follow_events_and_changes() -> None:
    label = str(STREAM)
    interest = CallbackMatcher(SINCE)
    interest.take([version(101, 1, endpoint=1)])
    reported = update_metrics({label: [interest]}, {})
    assert value("index_versions", where="memory") == 1
    interest.take([version(102, 2, endpoint=1)])
    reported = update_metrics({label: [interest]}, reported)
    assert value("index_versions", where="memory") == 2
    before = value("match_work_total", strategy=interest.matching.strategy, work="lookups") or 0
    for sequence in (11, 12):
        interest.match(EVENT, sequence)
        interest.advance(sequence)
        reported = update_metrics({label: [interest]}, reported)
    work = value("match_work_total", strategy=interest.matching.strategy, work="lookups")
    assert work == before + interest.counters.lookups > before
    metrics.INDEX_VERSIONS.labels(stream=label, where="memory").set(99)
    reported = update_metrics({label: [interest]}, reported)
    assert value("index_versions", where="memory") == 99, "nothing is set where nothing changed"
    assert update_metrics({}, reported) == {}
    assert value("index_versions", where="memory") == 0
