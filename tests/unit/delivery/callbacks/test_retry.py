"""The retry schedule as a table, and how Retry-After is read."""

from random import Random

import pytest

from delivery.callbacks.retry import (
    AttemptOutcome,
    RetryDecision,
    decide,
    outcome_of_status,
    read_retry_after,
)
from eventhub.base import limits
from eventhub.base.clock import ManualClock

LAST = limits.CALLBACK_ATTEMPTS_MAX
FAILED = ("status", "redirect", "timeout", "refused_address", "unknown_host", "connection", "tls")


@pytest.mark.parametrize(
    ("outcome", "number", "decision"),
    [
        (AttemptOutcome("delivered", 204), 1, RetryDecision("delivered")),
        (AttemptOutcome("delivered", 200), LAST, RetryDecision("delivered")),
        (AttemptOutcome("status", 500), LAST, RetryDecision("dead_lettered")),
        (AttemptOutcome("timeout"), LAST + 1, RetryDecision("dead_lettered")),
        (AttemptOutcome("status", 410), LAST, RetryDecision("dead_lettered", disables=True)),
        (
            AttemptOutcome("status", 503, retry_after_s=9e9),
            1,
            RetryDecision("pending", 3600.0, retry_after_s=3600),
        ),
        (
            AttemptOutcome("status", 429, retry_after_s=120),
            1,
            RetryDecision("pending", 120.0, retry_after_s=120),
        ),
    ],
)
def test_decisions(outcome: AttemptOutcome, number: int, decision: RetryDecision) -> None:
    assert decide(outcome, number, Random(1)) == decision


@pytest.mark.parametrize("outcome", FAILED)
def test_every_failure_is_retried(outcome: str) -> None:
    assert decide(AttemptOutcome(outcome), 1, Random(1)).state == "pending"


@pytest.mark.parametrize(
    ("number", "bound_s"), [(1, 1), (2, 2), (3, 4), (10, 512), (12, 2048), (13, 3600), (14, 3600)]
)
def test_backoff_has_full_jitter_up_to_a_bound_that_doubles(number: int, bound_s: int) -> None:
    random = Random(number)
    pauses = [decide(AttemptOutcome("timeout"), number, random).delay_s for _ in range(2_000)]
    assert 0 <= min(pauses) < bound_s * 0.01
    assert bound_s * 0.99 < max(pauses) <= bound_s
    assert bound_s * 0.45 < sum(pauses) / len(pauses) < bound_s * 0.55


def test_retry_after_never_makes_a_pause_shorter() -> None:
    random = Random(3)
    pauses = [
        decide(AttemptOutcome("status", 503, retry_after_s=1), 12, random).delay_s
        for _ in range(2_000)
    ]
    assert min(pauses) == 1
    assert max(pauses) > 2_000


def test_gone_keeps_the_delivery_pending_and_disables_the_endpoint() -> None:
    decision = decide(AttemptOutcome("status", 410), 1, Random(1))
    assert (decision.state, decision.disables) == ("pending", True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30),
        ("Tue, 14 Nov 2023 22:13:50 -0000", 30),
        ("Tue, 14 Nov 2023 21:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("1e9", None),
        ("999999999", 3600),
        ("1000000000", 3600),
        ("9" * 20, 3600),
        ("9" * 5_000, 3600),
        ("Mon, 01 Jan 2024 00:00:00 +9999999999999", None),
        ("Mon, 01 Jan 2024 00:00:00 +9999", None),
        ("", None),
        ("Tue, 99 Nov 2023 22:13:50 GMT", None),
    ],
)
def test_retry_after_is_read(text: str, seconds: float | None) -> None:
    assert read_retry_after(text, ManualClock().now_us()) == seconds


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "delivered"), (299, "delivered"), (300, "redirect"), (304, "redirect"),
     (399, "redirect"), (400, "status"), (410, "status"), (500, "status"), (999, "status")],
)  # fmt: skip
def test_outcomes_of_statuses(status: int, outcome: str) -> None:
    assert outcome_of_status(status) == outcome
