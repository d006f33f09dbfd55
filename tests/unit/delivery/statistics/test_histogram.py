"""Percentiles of histograms, compared with those of the times themselves."""

from random import Random

import pytest

from delivery.statistics.histogram import BUCKETS_MAX, add, bucket, count_in, percentile

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("time_ms", "index"),
    [(0, 0), (0.99, 0), (1, 1), (1.41, 1), (1.42, 2), (2, 3), (1_000, 20), (365 * DAY_MS, 63)],
)
def test_a_time_has_a_bucket(time_ms: float, index: int) -> None:
    assert bucket(time_ms) == index < BUCKETS_MAX


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_a_percentile_is_at_most_a_buckets_width_off(share: float, spread: float) -> None:
    random = Random(7)
    times = sorted(random.lognormvariate(4, spread) for _ in range(5_000))
    histogram: list[int] = []
    for time_ms in times:
        count_in(histogram, time_ms)
    exact = times[max(round(share * len(times)) - 1, 0)]
    estimate = percentile(histogram, share)
    assert estimate is not None
    if exact < 1:
        assert estimate <= 1
    else:
        assert 1 / 1.42 < estimate / exact < 1.42


def test_no_time_has_no_percentile() -> None:
    assert percentile([], 0.5) is None
    assert percentile([0, 0], 0.5) is None


def test_histograms_add_up() -> None:
    short, long = [1, 2], [1, 1, 1, 5]
    add(short, long)
    assert short == [2, 3, 1, 5]
    add(short, [1])
    assert short == [3, 3, 1, 5]
