"""Decide whether and when a part that ended is started again: pure, so that its test is a table."""

from collections.abc import Sequence
from typing import NamedTuple

WINDOW_S = 60.0
DELAYS_S = (0.1, 0.5, 1.0, 2.0, 4.0)  # by the number of restarts within the window; then the last


class Decision(NamedTuple):
    """Start again after `delay_s`, or give up when it is None."""

    delay_s: float | None


def decide(restarts_at: Sequence[float], now: float, per_minute_max: int) -> Decision:
    """`restarts_at`: times of earlier restarts of this part, on the same clock as `now`, in
    seconds."""
    recent = sum(1 for at in restarts_at if now - at < WINDOW_S)
    if recent >= per_minute_max:
        return Decision(None)
    return Decision(DELAYS_S[min(recent, len(DELAYS_S) - 1)])
