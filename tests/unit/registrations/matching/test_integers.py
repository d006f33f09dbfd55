"""Every integer that can be emitted can be matched, in every language, strategy and engine."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from eventhub.base.errors import EventHubError, NumberOutOfRange
from eventhub.event.envelope import Event
from eventhub.event.inbound import from_objects
from registrations.filter_source import FilterSource
from registrations.filters.pairs import parse_pairs
from registrations.match_index.engines.available import ENGINES
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.matcher import Matcher
from registrations.matching.strategies import STRATEGIES, new_matcher

GREATEST, LEAST = (1 << 64) - 1, -(1 << 63)


def filters(value: int) -> list[tuple[str, Any]]:
    """Return filters for one value, in all languages with values."""
    return [
        ("pairs", {"attributes": {"a": value}}),
        ("predicate", f"(= a {value})"),
        ("predicate", f"(in a {value} 7)"),
        ("predicate", f"(and (>= a {value}) (<= a {value}))"),
        ("predicate", f"(and (exists a) (not (!= a {value})))"),
        ("ready", f"*::* | $a == {value}"),
        ("ready", f"*::* | {value} in $a"),
        ("eventbridge", {"detail": {"a": [value]}}),
        ("eventbridge", {"detail": {"a": [{"numeric": ["=", value]}]}}),
    ]


def matchers() -> Iterator[FilterMatcher]:
    for name in STRATEGIES:
        yield FilterMatcher(new_matcher(name))
    for name in ENGINES:
        index: Matcher = IndexMatcher(options=IndexOptions(engine=name, first=1, least=1))
        yield FilterMatcher(index)


def test_every_integer_of_an_event_can_be_matched() -> None:
    values = [LEAST, LEAST + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, GREATEST - 1, GREATEST]
    asked = [(value, *one) for value in values for one in filters(value)]
    events = [Event("d", "t", {"a": value}) for value in values]
    for event in events:
        stored = {"domain": "d", "type": "t", "attributes": event.attributes}
        assert from_objects([stored])[0].attributes == event.attributes
    for matcher in matchers():
        for id, (_, language, source) in enumerate(asked):
            matcher.add(id, FilterSource(language, source).specs())
        for event in events:
            expected = {
                id for id, (value, *_) in enumerate(asked) if value == event.attributes["a"]
            }
            assert set(matcher.match(event)) == expected


@pytest.mark.parametrize("value", [GREATEST + 1, LEAST - 1, 10**30])
def test_an_integer_that_no_event_can_have_is_refused(value: int) -> None:
    for language, source in filters(value):
        with pytest.raises(EventHubError):
            FilterSource(language, source).read()
    with pytest.raises(NumberOutOfRange) as caught:
        parse_pairs({"attributes": {"a": value}})  # of a listener
    assert caught.value.field == "attributes.a"
    with pytest.raises((EventHubError, orjson.JSONEncodeError)):
        from_objects([{"domain": "d", "type": "t", "attributes": {"a": value}}])
