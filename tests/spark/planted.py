"""Faults planted in a history, as an audit has to name them."""

from collections.abc import Callable

from tests.spark.audited import Found
from tests.spark.history import DESK, History


def lose_at_an_edge(history: History) -> Found:
    """The last row of a sealed segment that is nowhere else; nothing comes behind it to show it."""
    history.events[1002] = [each for each in history.events[1002] if each[0] != 80]
    history.store(1002)
    return Found("missing", "orders", 1002, 80, 80)


def lose_inside(history: History) -> Found:
    """A row of the open segment, in the database."""
    history.events[1004] = [each for each in history.events[1004] if each[0] != 127]
    history.store(1004)
    return Found("missing", "orders", 1004, 127, 127)


def cut_a_file(history: History) -> Found:
    path = history.path(1001)
    path.write_bytes(path.read_bytes()[:-100])
    return Found("truncated", "orders", 1001, 1, 40)


def repeat_a_sequence(history: History) -> Found:
    events = history.events[1006]
    history.events[1006] = [*events[:5], events[4], *events[5:]]
    history.store(1006)
    return Found("duplicate", "ticks", 1006, 25, 25)


def forget_the_attempt(history: History) -> Found:
    """Nothing shows that a delivery which is said to be delivered ever was."""
    history.remove("attempts", *history.attempts(history.delivery(DESK, 102)))
    return Found("delivered_without_attempt", "orders", 1003, 102, 102, DESK)


def forget_the_delivery(history: History) -> Found:
    history.undeliver(DESK, 97)
    return Found("not_delivered", "orders", 1003, 97, 97, DESK)


# Those of the issue, in the order in which they are told.
SIX: tuple[Callable[[History], Found], ...] = (
    cut_a_file,
    lose_at_an_edge,
    lose_inside,
    repeat_a_sequence,
    forget_the_delivery,
    forget_the_attempt,
)
