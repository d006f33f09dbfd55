"""The rows of a segment against what was sealed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkjobs.audit.sequences import SequenceCheck, SequenceRange, ranges

CASES = {
    "as sealed": ([10, 11, 12, 13], []),
    "first gone": ([11, 12, 13], [("missing", 10, 10)]),
    "last two gone": ([10, 11], [("missing", 12, 13)]),
    "all gone": ([], [("missing", 10, 13)]),
    "twice": ([10, 11, 11, 12, 13], [("duplicate", 11, 11)]),
    "twice, far away": ([10, 11, 12, 13, 10], [("duplicate", 10, 10)]),
    "in place of another": ([10, 11, 11, 13], [("missing", 12, 12), ("duplicate", 11, 11)]),
    "exchanged": ([10, 12, 11, 13], [("out_of_order", 11, 11)]),
    "the last first": ([13, 10, 11, 12], [("out_of_order", 10, 12)]),
    "beyond": ([9, 10, 11, 12, 13, 15, 14], [("out_of_bounds", 9, 9), ("out_of_bounds", 14, 15)]),
    # {10, 10, 13, 13} has the count and the sum of what was sealed
    "same count and sum": (
        [10, 10, 13, 13],
        [("missing", 11, 12), ("duplicate", 10, 10), ("duplicate", 13, 13)],
    ),
}


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_named_with_its_range(name: str, batch: int) -> None:
    rows, expected = CASES[name]
    sequences = SequenceCheck(10, 13)
    fresh: list[int] = []
    for at in range(0, len(rows), batch):
        piece = np.array(rows[at : at + batch], np.int64)
        fresh += piece[sequences.take(piece)].tolist()
    assert [(kind, *each) for kind, each in sequences.faults()] == expected
    assert len(fresh) == len(set(fresh)) == sequences.events
    assert set(fresh) == set(rows) & {10, 11, 12, 13}


@given(st.sets(st.integers(0, 60)))
def test_ranges_hold_each_number_once(numbers: set[int]) -> None:
    found = ranges(np.array(sorted(numbers), np.int64))
    assert [n for each in found for n in range(each.first, each.last + 1)] == sorted(numbers)
    assert all(one.last + 1 < next.first for one, next in pairwise(found))
    assert all(isinstance(each, SequenceRange) for each in found)
