"""The retry schedule as a table, and how Retry-After is read."""

from random import Random

import pytest

from delivery.callbacks.retry import (
    AttemptOutcome,
    RetryDecision,
    decide,
    outcome_of_status,
)
from eventhub.base import limits
from eventhub.base.clock import ManualClock
from registrations.endpoints.retry_after import read_retry_after

SCHEDULE = limits.CALLBACK_RETRY_SCHEDULE_S
LAST = len(SCHEDULE) + 1
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


def pauses(number: int, outcome: AttemptOutcome, schedule: list[int] | None = None) -> list[float]:
    random = Random(number)
    return [decide(outcome, number, random, schedule).delay_s for _ in range(2_000)]


@pytest.mark.parametrize("number", range(1, LAST))
def test_a_pause_is_random_around_the_one_of_the_schedule(number: int) -> None:
    bound_s = SCHEDULE[number - 1]
    found = pauses(number, AttemptOutcome("timeout"))
    assert 0.5 * bound_s <= min(found) < 0.51 * bound_s
    assert 1.49 * bound_s < max(found) <= 1.5 * bound_s
    assert 0.97 * bound_s < sum(found) / len(found) < 1.03 * bound_s


def test_the_default_schedule_takes_three_days_and_never_less_than_36_hours() -> None:
    hours = sum(SCHEDULE) / 3_600
    assert 72 < hours < 80
    assert hours * (1 - limits.CALLBACK_RETRY_JITTER) > 36


def test_an_endpoint_has_a_schedule_of_its_own() -> None:
    failed = AttemptOutcome("status", 500)
    assert 50 <= min(pauses(2, failed, [1, 100])) <= max(pauses(2, failed, [1, 100])) <= 150
    assert decide(failed, 3, Random(1), [1, 100]).state == "dead_lettered"
    assert decide(failed, 1, Random(1), []).state == "dead_lettered"
    assert decide(failed, 1, Random(1), None).state == "pending"


def test_retry_after_never_makes_a_pause_shorter() -> None:
    found = pauses(2, AttemptOutcome("status", 503, retry_after_s=300))
    assert min(found) == 300
    assert max(found) > 440


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
