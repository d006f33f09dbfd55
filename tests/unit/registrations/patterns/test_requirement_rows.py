"""READY's rows over several events hold with their check values."""

import pytest

from registrations.filters.errors import FilterSyntax
from registrations.patterns.parser import parse_pattern
from tests.unit.registrations.patterns.page import events_of, expected_of, fed, matches_of
from tests.unit.registrations.patterns.requirement_rows import CHECKS, REFUSED, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: f"{one.row}: {one.events}")
def test_the_row_holds(check: Check) -> None:
    found = matches_of(fed(check.pattern, events_of(check.events)))
    assert found == expected_of(check.matches)


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_the_sequence_is_refused_with_what_to_write(text: str, message: str) -> None:
    """RDY-25."""
    with pytest.raises(FilterSyntax) as caught:
        parse_pattern(text)
    assert message in caught.value.message
