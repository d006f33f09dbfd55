"""The update of an endpoint's health from a batch of attempts."""

from registrations.endpoints.health import EndpointAttempt, HealthUpdate, health_updates


def tried(outcome: str, age_us: int, *, endpoint: int = 7) -> EndpointAttempt:
    return EndpointAttempt(endpoint, outcome, 200 if outcome == "delivered" else 500, age_us)


def test_an_update_has_the_last_attempt_and_the_first_failure_since_the_last_delivery() -> None:
    batch = [tried("status", 10), tried("status", 30), tried("delivered", 40), tried("status", 50)]
    assert health_updates(batch) == [HealthUpdate(batch[0], delivered_age_us=40, failing_age_us=30)]


def test_an_endpoint_that_answers_again_is_not_failing() -> None:
    batch = [tried("status", 30), tried("delivered", 10)]
    assert health_updates(batch) == [
        HealthUpdate(batch[1], delivered_age_us=10, failing_age_us=None)
    ]


def test_failures_of_the_hub_do_not_count_for_an_endpoint() -> None:
    other = tried("status", 5, endpoint=3)
    assert health_updates([tried("unreadable", 10), other]) == [HealthUpdate(other, None, 5)]
