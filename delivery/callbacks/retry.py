"""The retry schedule: decides after an attempt whether a delivery is delivered, retried after a
pause, or dead-lettered. Plain module.

A delivery whose event has expired is not attempted and ends as `expired`.
"""

import math
from collections.abc import Container, Sequence
from random import Random
from typing import Literal, NamedTuple

from eventhub.base import limits

DeliveryState = Literal["delivered", "pending", "dead_lettered", "expired", "cancelled"]


class AttemptOutcome(NamedTuple):
    """The outcome of one attempt.

    `code`: `delivered` (2xx), `redirect` (3xx), `status` (any other response), `timeout`,
    `refused_address`, `unknown_host`, `connection`, `tls`, `protocol` (malformed or too large),
    `token_unavailable` (OAuth 2.0), `unreadable` (the event, at present), `internal`.
    `retry_after_s`: the Retry-After of the response. `of_event`: not of a request, but of one event
    in a batch, which says nothing about the endpoint; then `detail` may say why.
    """

    code: str
    status: int | None = None
    retry_after_s: float | None = None
    of_event: bool = False
    detail: str = ""


class RetryDecision(NamedTuple):
    """The next state of a delivery. `pending`: retry after `delay_s`. `disables`: also disable the
    endpoint (410). `retry_after_s`: the Retry-After of the response, up to an hour.
    """

    state: DeliveryState
    delay_s: float = 0.0
    disables: bool = False
    retry_after_s: int | None = None


def decide(
    outcome: AttemptOutcome,
    number: int,
    random: Random,
    schedule: Sequence[int] | None = None,
    refusals: Container[int] = (),
) -> RetryDecision:
    """Return the decision after the attempt `number` (1, 2, 3, …).

    `schedule`: the pauses after the first attempt, the second and so on, in seconds; None: the
    default. A delivery whose last attempt failed is dead-lettered. A pause is random, from 0.5 to
    1.5 times its length, so that retries spread out and the schedule takes as long as it states on
    average. A Retry-After extends the pause, up to an hour. `refusals`: statuses that dead-letter
    this delivery at once, and say nothing of the endpoint.
    """
    if outcome.code == "delivered":
        return RetryDecision("delivered")
    if outcome.status in refusals:
        return RetryDecision("dead_lettered")
    pauses = limits.CALLBACK_RETRY_SCHEDULE_S if schedule is None else schedule
    disables = outcome.status == 410 and not outcome.of_event
    retry_after_s = min(limits.CALLBACK_RETRY_AFTER_S_MAX, outcome.retry_after_s or 0.0)
    retry_after = math.ceil(retry_after_s) or None
    if number > len(pauses):
        return RetryDecision("dead_lettered", disables=disables, retry_after_s=retry_after)
    jitter = limits.CALLBACK_RETRY_JITTER
    pause_s = pauses[number - 1] * random.uniform(1 - jitter, 1 + jitter)
    return RetryDecision("pending", max(pause_s, retry_after_s), disables, retry_after)


def outcome_of_status(status: int) -> str:
    """Return the outcome for a status: 2xx is a success, and redirects are not followed."""
    if 200 <= status < 300:
        return "delivered"
    return "redirect" if 300 <= status < 400 else "status"
