"""OIF's rows over several events hold with their check values."""

import pytest

from registrations.temporal.language import parse_temporal
from tests.unit.registrations.temporal.engines import engine_of, fed, matches
from tests.unit.registrations.temporal.requirement_rows import CHECKS, Check
from tests.unit.registrations.temporal.rules import event, position


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: f"{one.row}: {one.matches}")
def test_the_row_holds(check: Check) -> None:
    found = fed(engine_of(check.pattern), check.events)
    assert [match for some in found for match in some] == check.matches


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: f"{one.row}: {one.matches}")
def test_a_pattern_that_recalls_old_events_has_the_same_matches_at_once(check: Check) -> None:
    """OIF-22."""
    engine = engine_of("(event (never ?n))")
    fed(engine, check.events)
    recent = [(position(number), event(one)) for number, one in enumerate(check.events, 1)]
    outputs = engine.add(7, parse_temporal(check.pattern), recent=recent)
    assert matches(outputs) == check.matches
