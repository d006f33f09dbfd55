"""Tests of texts that ignore case, and of addresses: alone, in long lists, in objects, printed,
explained and implied by others.
"""

from typing import Any

import pytest

from registrations.filters.closure.implied import follows
from registrations.filters.errors import FilterSyntax
from registrations.filters.evaluate import holds
from registrations.filters.explain import explain
from registrations.filters.languages import parse
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import specs_of
from registrations.matching.strategies import STRATEGIES
from tests.unit.registrations.filters.trees import event

OTHERS = [f"other{n}" for n in range(20)]  # more than are tested one by one
CASES: tuple[tuple[str, Any, bool], ...] = (
    ('(equals-ignore-case a "Ab")', "aB", True),
    ('(equals-ignore-case a "Ab")', "ab ", False),
    ('(equals-ignore-case a "É")', "é", True),
    ('(equals-ignore-case a "ß")', "SS", False),
    ('(equals-ignore-case a "ΟΔΟΣ")', "οδος", True),
    ('(equals-ignore-case a "ΟΔΟΣ")', "οδοσ", True),  # a final sigma is a sigma
    ('(prefix-ignore-case a "ΟΔΟΣ")', "ΟΔΟΣΑ", True),
    ('(prefix-ignore-case a "οδος")', "ΟΔΟΣΑ", True),
    ('(suffix-ignore-case a "Σ")', "οδος", True),
    ('(suffix-ignore-case a "Σ")', "οδο", False),
    ('(equals-ignore-case a "5")', 5, False),
    ('(equals-ignore-case a "")', "", True),
    ('(prefix-ignore-case a "ERR")', "error", True),
    ('(prefix-ignore-case a "ERR")', "er", False),
    ('(suffix-ignore-case a ".PNG")', "cat.png", True),
    ('(suffix-ignore-case a ".PNG")', "png", False),
    ('(cidr a "10.0.0.0/8")', "10.255.0.1", True),
    ('(cidr a "10.0.0.0/8")', "11.0.0.0", False),
    ('(cidr a "10.0.0.0/24")', "10.0.0.0", True),
    ('(cidr a "10.0.0.0/24")', "10.0.0.255", True),
    ('(cidr a "10.0.0.0/24")', "10.0.1.0", False),
    ('(cidr a "10.0.0.7/24")', "10.0.0.1", True),  # the bits of the host do not count
    ('(cidr a "10.0.0.1/32")', "10.0.0.1", True),
    ('(cidr a "0.0.0.0/0")', "255.255.255.255", True),
    ('(cidr a "0.0.0.0/0")', "::1", False),
    ('(cidr a "2001:db8::/32")', "2001:0DB8::1", True),
    ('(cidr a "2001:db8::/32")', "2001:db9::1", False),
    ('(cidr a "::/0")', "10.0.0.1", False),
    ('(cidr a "10.0.0.0/8")', "10.0.0", False),
    ('(cidr a "10.0.0.0/8")', "x" * 100, False),
    ('(cidr a "10.0.0.0/8")', 167772161, False),
)


@pytest.mark.parametrize(("filter", "value", "held"), CASES)
def test_values_lists_and_objects(filter: str, value: Any, held: bool) -> None:
    """The result for a value is that for a list with it, and for an object with it."""
    node = parse_predicate(filter)
    inside = parse_predicate(f"(within o {filter})")
    for name, make in STRATEGIES.items():
        matcher = FilterMatcher(make())
        matcher.add(1, specs_of(node))
        matcher.add(2, specs_of(inside))
        for a in (value, [value, *OTHERS], [*OTHERS, value]):
            assert holds(node, event({"a": a})) is held
            assert matcher.match(event({"a": a})) == [1] * held, name
        several = [{"a": one} for one in OTHERS]
        assert matcher.match(event({"o": [*several, {"a": value}]})) == [2] * held, name
    assert parse_predicate(printed(node)) == node
    found = explain(node, event({"a": value}))
    assert found.held is held and "expected" in found.why


@pytest.mark.parametrize("block", ["10.0.0.0", "10.0.0/8", "10.0.0.0/33", "x/8", "::/129", "/", ""])
def test_what_is_no_block_is_refused(block: str) -> None:
    with pytest.raises(FilterSyntax) as refused:
        parse("predicate", f'(and (= b 1) (cidr a "{block}"))')
    assert (refused.value.details["line"], refused.value.details["column"]) == (1, 22)


@pytest.mark.parametrize("fact", ["equals-ignore-case", "prefix-ignore-case", "suffix-ignore-case"])
@pytest.mark.parametrize("test", ["prefix", "suffix", "substring", "wildcard"])
def test_a_test_in_any_case_implies_none_of_one_case(test: str, fact: str) -> None:
    """The closure of filters tells producers what nobody needs: it must not leave out an event."""
    implied, known = (parse_predicate(f'({op} a "ab")') for op in (test, fact))
    assert not follows(implied, known)
    assert follows(parse_predicate(f'({fact} a "AB")'), parse_predicate('(= a "aB")'))
