"""What the attempts of one batch say of an endpoint."""

from registrations.endpoints.health import EndpointAttempt, HealthUpdate, health_updates


def tried(outcome: str, age_us: int, *, endpoint: int = 7) -> EndpointAttempt:
    return EndpointAttempt(endpoint, outcome, 200 if outcome == "delivered" else 500, age_us)


def test_the_last_attempt_counts_and_the_first_failure_since_one_was_delivered() -> None:
    batch = [tried("status", 10), tried("status", 30), tried("delivered", 40), tried("status", 50)]
    assert health_updates(batch) == [HealthUpdate(batch[0], delivered_age_us=40, failing_age_us=30)]


def test_an_endpoint_that_answers_again_does_not_fail() -> None:
    batch = [tried("status", 30), tried("delivered", 10)]
    assert health_updates(batch) == [
        HealthUpdate(batch[1], delivered_age_us=10, failing_age_us=None)
    ]


def test_what_the_hub_itself_could_not_do_says_nothing_of_an_endpoint() -> None:
    other = tried("status", 5, endpoint=3)
    assert health_updates([tried("unreadable", 10), other]) == [HealthUpdate(other, None, 5)]
