"""Decide whether and when a part that ended is started again: pure, so that its test is a table.
Plain module.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.base import limits

DELAYS_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # by the restarts in a row; then the last


class Excuse(NamedTuple):
    """Why a part that has just ended may not be to blame. `at_once`: it is started again soon and
    however often, because somebody is doing something about the reason."""

    reason: str
    at_once: bool = False


class Decision(NamedTuple):
    """Start again after `delay_s`, or give up when it is None. `row`: restarts in a row so far."""

    delay_s: float | None
    row: int


def decide(restarts_at: Sequence[float], now: float, row_max: int | None) -> Decision:
    """`restarts_at`: when this part was started again before, ascending, on the same clock as
    `now`, in seconds; `row_max` None: never give up."""
    row = _in_a_row(restarts_at, now)
    if row_max is not None and row >= row_max:
        return Decision(None, row)
    return Decision(DELAYS_S[min(row, len(DELAYS_S) - 1)], row)


def _in_a_row(restarts_at: Sequence[float], now: float) -> int:
    """Count the latest restarts, none of which kept the part up for RESTARTS_ROW_S."""
    count, ended = 0, now
    for at in reversed(restarts_at):
        if ended - at >= limits.RESTARTS_ROW_S:
            break
        count, ended = count + 1, at
    return count
