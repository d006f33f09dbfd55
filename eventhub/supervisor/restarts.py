"""The restart policy: whether and when a process that ended is restarted. Pure, so that its test is
a table. Plain module.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.base import limits

DELAYS_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # by restarts in a row; then the last one


class ExternalCause(NamedTuple):
    """Why a process that has just ended may not be to blame. `at_once`: it is restarted soon and
    without limit, because the hub is removing the cause.
    """

    reason: str
    at_once: bool = False


class RestartDecision(NamedTuple):
    """Restart after `delay_s` seconds, or not at all if it is None. `row`: restarts in a row so
    far.
    """

    delay_s: float | None
    row: int


def decide(restarts_at: Sequence[float], now: float, row_max: int | None) -> RestartDecision:
    """Decide on a restart. `restarts_at`: the process's earlier restarts, ascending, in seconds on
    the same clock as `now`; `row_max`: restarts in a row, None without limit.
    """
    row = _in_a_row(restarts_at, now)
    if row_max is not None and row >= row_max:
        return RestartDecision(None, row)
    return RestartDecision(DELAYS_S[min(row, len(DELAYS_S) - 1)], row)


def _in_a_row(restarts_at: Sequence[float], now: float) -> int:
    """Count the latest restarts after which the process ran for less than RESTARTS_ROW_S."""
    count, ended = 0, now
    for at in reversed(restarts_at):
        if ended - at >= limits.RESTARTS_ROW_S:
            break
        count, ended = count + 1, at
    return count
