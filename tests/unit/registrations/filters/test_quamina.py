"""Patterns of quamina's own cases: the hub has its results, but for the differences that
`quamina_cases.py` lists with their reasons.
"""

from typing import Any

import pytest

from eventhub.base.errors import BadRequest
from registrations.filters.evaluate import holds
from registrations.filters.eventbridge import parse_eventbridge
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import specs_of
from registrations.matching.strategies import STRATEGIES, MatcherFactory
from tests.unit.registrations.filters.quamina_cases import (
    ACCEPTED,
    CASES,
    DIFFERENT,
    REFUSED,
    REFUSED_BY_QUAMINA,
    REFUSED_BY_THE_HUB,
)
from tests.unit.registrations.filters.trees import event

EVENTS = [(case, one, True) for case in CASES for one in case.matching]
EVENTS += [(case, one, False) for case in CASES for one in case.others]


def matcher_of(patterns: list[dict[str, Any]], make: MatcherFactory) -> FilterMatcher:
    """Return a matcher of patterns by their positions."""
    matcher = FilterMatcher(make())
    for position, pattern in enumerate(patterns):
        matcher.add(position, specs_of(parse_eventbridge({"detail": pattern})))
    return matcher


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_each_strategy_agrees_with_quamina(make: MatcherFactory) -> None:
    """For each pattern alone, and for all in one matcher."""
    alone = {id(case): matcher_of([case.pattern], make) for case in CASES}
    together = matcher_of([case.pattern for case in CASES], make)
    position = {id(case): at for at, case in enumerate(CASES)}
    for case, one, matches in EVENTS:
        assert alone[id(case)].match(event(one)) == [0] * matches, (case.pattern, one)
        assert (position[id(case)] in together.match(event(one))) is matches, (case.pattern, one)


def test_the_evaluation_agrees_with_quamina() -> None:
    for case, one, matches in EVENTS:
        node = parse_eventbridge({"detail": case.pattern})
        assert holds(node, event(one)) is matches, (case.pattern, one)


@pytest.mark.parametrize(("reason", "pattern", "one", "matches"), DIFFERENT)
def test_a_difference_is_the_same_in_every_strategy(
    reason: str, pattern: dict[str, Any], one: dict[str, Any], matches: bool
) -> None:
    assert holds(parse_eventbridge({"detail": pattern}), event(one)) is not matches, reason
    for strategy, make in STRATEGIES.items():
        expected = [0] * (not matches)
        assert matcher_of([pattern], make).match(event(one)) == expected, (reason, strategy)


def test_both_refuse_and_accept_the_same_fields_but_for_the_listed_ones() -> None:
    for allowed in (*ACCEPTED, *(one for _, one in REFUSED_BY_QUAMINA)):
        parse_eventbridge({"detail": {"x": allowed}})
    for allowed in (*REFUSED, *(one for _, one in REFUSED_BY_THE_HUB)):
        with pytest.raises(BadRequest):
            parse_eventbridge({"detail": {"x": allowed}})


def test_the_number_of_cases_is_that_of_the_documentation() -> None:
    """docs/languages.md, "EventBridge"."""
    distinct = {(str(case.pattern), str(one)) for case, one, _ in EVENTS}
    assert len(distinct) == len(EVENTS) == 816
    assert len(ACCEPTED) + len(REFUSED) == 32
    assert (len(DIFFERENT), len(REFUSED_BY_QUAMINA), len(REFUSED_BY_THE_HUB)) == (5, 10, 3)
