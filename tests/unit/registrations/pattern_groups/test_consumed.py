"""The events that a group consumed last, as runs."""

from registrations.pattern_groups.consumed import ConsumedRuns
from registrations.patterns.pattern_engine import EventPosition


def test_runs_that_are_not_needed_are_forgotten() -> None:
    consumed = ConsumedRuns(2)
    for order, stream in enumerate((1, 2, 1, 2), 1):
        consumed.add(EventPosition(order, stream, "s", order, 0))
        assert len(consumed.runs) == consumed.count == min(order, 2)
    assert [run.first for run in consumed.last(2)] == [3, 4]
