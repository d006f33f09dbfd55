"""What sessions refuse: types that a supplier has not declared, and transient streams."""

import pytest

from tests.acceptance.registrations.test_sessions import (
    GROUPS,
    REGISTRATIONS,
    SUPPLIES,
    call,
    consumer,
    create,
    made,
)
from tests.live import Answer, LiveZone


@pytest.fixture
def alarms(zone: LiveZone) -> LiveZone:
    zone.create_stream("alarms")
    return zone


@pytest.mark.req("RDY-03")
def test_a_refused_type_is_answered_with_few_of_many_declared_types(alarms: LiveZone) -> None:
    zone = alarms
    others = [{"domain": "Host" * 40, "type": f"Type{number}.{'x' * 150}"} for number in range(99)]
    made(create(zone, "writer", "supplier", supplies=[*others, *SUPPLIES]))
    answer = call(zone, "POST", "/v1/streams/alarms/events", {"domain": "Net", "type": "Other"},
                  through="writer")  # fmt: skip
    problem = answer.refused(422, "type_not_supplied")
    assert problem["supplies"] == [*SUPPLIES, *others[:9]], "those of the domain come first"
    assert problem["supplies_more"] == 90
    assert "and 90 more, not Net::Other" in problem["detail"]


@pytest.mark.req("RDY-09")
def test_a_registration_of_a_session_names_no_transient_stream(alarms: LiveZone) -> None:
    """A session gets its events from the log, in which those of a transient stream are not."""
    zone = alarms
    zone.create_stream("beats", durability="transient")
    consumer(zone, "reader")
    made(call(zone, "POST", GROUPS, {"name": "team"}))
    both = {"streams": ["alarms", "beats"]}

    def refuse(answer: Answer, at: str = "streams.1") -> None:
        problem = answer.refused(422, "transient_stream")
        assert (problem["position"]["field"], problem["stream"]) == (at, "beats")

    refuse(call(zone, "POST", REGISTRATIONS, both, through="reader"))
    for owner in ({"session": "reader"}, {"session_group": "team"}):
        refuse(call(zone, "POST", REGISTRATIONS, {**both, **owner}))
        refuse(call(zone, "POST", REGISTRATIONS, [{"streams": ["beats"], **owner}]), "streams.0")
        own = made(call(zone, "POST", REGISTRATIONS, {"streams": ["alarms"], **owner}))
        refuse(call(zone, "PATCH", f"{REGISTRATIONS}/{own['id']}", both))
    made(call(zone, "POST", REGISTRATIONS, both))
