"""Histograms of times, and the percentiles estimated from them. Plain module.

A histogram is a list of counts. Element 0 counts times below 1 ms, element n those from
2^((n-1)/2) ms on, up to 2^(n/2) ms: each bucket is 1.41 times as wide as the one before. So an
estimate, which assumes that times are spread evenly over their bucket on a logarithmic scale, is at
most 41 % off, and histograms of different times add up.
"""

import math
from collections.abc import Sequence

BUCKETS_MAX = 64  # the last one begins at 2^31 ms, 24 days


def bucket(time_ms: float) -> int:
    """Return the index of the bucket of a time."""
    if time_ms < 1:
        return 0
    return min(int(2 * math.log2(time_ms)) + 1, BUCKETS_MAX - 1)


def count_in(histogram: list[int], time_ms: float, times: int = 1) -> None:
    """Count a time so many times in a histogram, which is extended if necessary."""
    index = bucket(time_ms)
    if index >= len(histogram):
        histogram.extend([0] * (index + 1 - len(histogram)))
    histogram[index] += times


def add(histogram: list[int], other: Sequence[int]) -> None:
    """Add the counts of another histogram to one."""
    histogram.extend([0] * (len(other) - len(histogram)))
    for index, count in enumerate(other):
        histogram[index] += count


def percentile(histogram: Sequence[int], share: float) -> float | None:
    """Return the time in milliseconds below which a share (0 to 1) of the times are, to three
    significant digits; None without any.
    """
    total = sum(histogram)
    if not total:
        return None
    rank, below = share * total, 0
    for index, count in enumerate(histogram):
        if count and below + count >= rank:
            return _rounded(_time_in(index, (rank - below) / count))
        below += count
    return None


def _time_in(index: int, part: float) -> float:
    """Return the time at a part (0 to 1) of a bucket."""
    return part if index == 0 else float(2 ** ((index - 1 + part) / 2))


def _rounded(time_ms: float) -> float:
    return float(f"{time_ms:.3g}")
