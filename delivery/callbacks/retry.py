"""What follows from one try of a delivery, as data: delivered, again later, or dead. Plain module.

A delivery whose event has expired is not tried, and ends as `expired`.
"""

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random
from typing import Literal, NamedTuple

from eventhub.base import limits

State = Literal["delivered", "pending", "dead_lettered", "expired"]
_SECONDS = re.compile(r"[0-9]+")


class Tried(NamedTuple):
    """How one try ended.

    `outcome`: `delivered` (2xx), `redirect` (3xx), `status` (any other answer), `timeout`,
    `refused_address`, `unknown_host`, `connection`, `tls`, `protocol` (no HTTP, or too much of it),
    `unreadable` (the event, just now), `internal`. `retry_after_s`: what the answer asked for.
    """

    outcome: str
    status: int | None = None
    retry_after_s: float | None = None


class Decision(NamedTuple):
    """`pending`: try again in `delay_s`. `gone`: besides, disable the endpoint (410).
    `asked_s`: what Retry-After asked for. `spared`: the try does not count.
    """

    state: State
    delay_s: float = 0.0
    gone: bool = False
    asked_s: int | None = None
    spared: bool = False


def decide(
    tried: Tried, number: int, random: Random, *, probe: bool = False, spares: bool = False
) -> Decision:
    """Return the outcome of a delivery after its try `number` (1, 2, 3, …; of those that count).

    Full jitter: a pause from 0 to a bound that doubles, so that a crowd of retries spreads out. A
    Retry-After makes the pause longer, never shorter, within the same longest pause. `probe`: the
    endpoint backs off as a whole, whose pause is the delivery's; `spares`: and it does not count.
    """
    if tried.outcome == "delivered":
        return Decision("delivered")
    gone = tried.status == 410
    asked_s = min(limits.CALLBACK_RETRY_S_MAX, tried.retry_after_s or 0.0)
    asked = math.ceil(asked_s) or None
    if spares:
        return Decision("pending", asked_s, gone, asked, spared=True)
    if probe and number < limits.CALLBACK_ATTEMPTS_MAX:
        return Decision("pending", asked_s, gone, asked)
    if number >= limits.CALLBACK_ATTEMPTS_MAX:
        return Decision("dead_lettered", gone=gone, asked_s=asked)
    bound_s = min(limits.CALLBACK_RETRY_S_MAX, limits.CALLBACK_RETRY_S_BASE * 2 ** (number - 1))
    return Decision("pending", max(random.uniform(0.0, bound_s), asked_s), gone, asked)


def read_retry_after(text: str, now_us: int) -> float | None:
    """The seconds that a Retry-After asks for, as a number (within the longest pause) or as an HTTP
    date; None if it is neither.
    """
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return min(limits.CALLBACK_RETRY_S_MAX, float(text))  # of very many digits: inf
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    try:
        return max(0.0, (until - datetime.fromtimestamp(now_us / 1e6, UTC)).total_seconds())
    except OverflowError:
        return None


def outcome_of_status(status: int) -> str:
    """2xx is success; a redirect is never followed."""
    if 200 <= status < 300:
        return "delivered"
    return "redirect" if 300 <= status < 400 else "status"
