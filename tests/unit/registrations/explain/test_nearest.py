"""Nearest misses: a matching filter has no failed test, and the best misses are kept in order."""

from hypothesis import given
from hypothesis import strategies as st

from eventhub.base.errors import EventHubError
from eventhub.event.envelope import Event
from registrations.explain.nearest import Miss, Nearest, alternatives_of, failed_json, miss_of
from registrations.filters.ast import Node
from registrations.filters.evaluate import holds, no_supertypes
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from registrations.matching.spec import specs_of
from tests.unit.registrations.filters.trees import event, events, trees


def miss(text: str, **attributes: object) -> Miss | None:
    return miss_of(
        alternatives_of(specs_of(parse_predicate(text))), event(attributes), no_supertypes
    )


@given(trees, events)
def test_a_filter_has_failed_tests_exactly_if_it_does_not_match(node: Node, one: Event) -> None:
    try:
        specs = specs_of(node)
    except EventHubError:
        return
    found = miss_of(alternatives_of(specs), one, no_supertypes)
    assert (found is not None and not found.failed) == holds(node, one)
    if found is None:
        assert not specs
        return
    assert not any(holds(test, one) for test in found.failed)
    assert len(failed_json(found, one, no_supertypes)) == len(found.failed)


def test_the_nearest_alternative_fails_the_fewest_tests() -> None:
    text = "(or (and (= a 2) (= d 4)) (and (= b 2) (= c 3) (= e 1)) (and (= f 2) (= g 4)))"
    found = miss(text, b=2, c=3)
    assert found is not None
    assert ([printed(test) for test in found.failed], found.held) == (["(= e 1)"], 2)
    gate = miss("(and (= @domain 'x) (= @type 't) (> size 9))")
    assert gate is not None
    assert (len(gate.failed), gate.held, gate.tests) == (2, 1, 3)
    assert miss("false") is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4))), st.integers(1, 5))
def test_the_best_misses_are_the_first_ones_of_a_sort(
    offers: list[tuple[int, int]], count: int
) -> None:
    nearest: Nearest[int] = Nearest(count)
    for number, (failed, held) in enumerate(offers):
        nearest.offer(failed, held, number)
    order = sorted(range(len(offers)), key=lambda n: (offers[n][0], -offers[n][1], n))
    assert [*nearest] == order[:count]
