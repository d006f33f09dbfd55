"""Faults planted in a history; each returns the finding that an audit must report."""

from collections.abc import Callable

from tests.spark.audited import ExpectedFinding
from tests.spark.history import DESK, JobHistory


def lose_at_an_edge(history: JobHistory) -> ExpectedFinding:
    """Remove the last row of a sealed segment, which no later row makes conspicuous."""
    history.events[1002] = [each for each in history.events[1002] if each[0] != 80]
    history.store(1002)
    return ExpectedFinding("missing", "orders", 1002, 80, 80)


def lose_inside(history: JobHistory) -> ExpectedFinding:
    """Remove a row of the open segment, in the database."""
    history.events[1004] = [each for each in history.events[1004] if each[0] != 127]
    history.store(1004)
    return ExpectedFinding("missing", "orders", 1004, 127, 127)


def cut_a_file(history: JobHistory) -> ExpectedFinding:
    path = history.path(1001)
    path.write_bytes(path.read_bytes()[:-100])
    return ExpectedFinding("truncated", "orders", 1001, 1, 40)


def repeat_a_sequence(history: JobHistory) -> ExpectedFinding:
    events = history.events[1006]
    history.events[1006] = [*events[:5], events[4], *events[5:]]
    history.store(1006)
    return ExpectedFinding("duplicate", "ticks", 1006, 25, 25)


def remove_the_attempt(history: JobHistory) -> ExpectedFinding:
    """Remove the evidence of a delivery that is marked delivered."""
    history.remove("attempts", *history.attempts(history.delivery(DESK, 102)))
    return ExpectedFinding("delivered_without_attempt", "orders", 1003, 102, 102, DESK)


def remove_the_delivery(history: JobHistory) -> ExpectedFinding:
    history.remove_delivery(DESK, 97)
    return ExpectedFinding("not_delivered", "orders", 1003, 97, 97, DESK)


# In the order of the findings.
SIX: tuple[Callable[[JobHistory], ExpectedFinding], ...] = (
    cut_a_file,
    lose_at_an_edge,
    lose_inside,
    repeat_a_sequence,
    remove_the_delivery,
    remove_the_attempt,
)
