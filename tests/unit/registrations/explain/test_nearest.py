"""Nearest misses: a filter that matches fails nothing, and the few best are kept in order."""

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
def test_nothing_fails_of_what_matches_and_of_the_rest_something(node: Node, one: Event) -> None:
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


def test_the_alternative_counts_that_fails_in_the_fewest_tests() -> None:
    text = "(or (and (= a 2) (= d 4)) (and (= b 2) (= c 3) (= e 1)) (and (= f 2) (= g 4)))"
    found = miss(text, b=2, c=3)
    assert found is not None
    assert ([printed(test) for test in found.failed], found.held) == (["(= e 1)"], 2)
    gate = miss("(and (= @domain 'x) (= @type 't) (> size 9))")
    assert gate is not None
    assert (len(gate.failed), gate.held, gate.tests) == (2, 1, 3)
    assert miss("false") is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4))), st.integers(1, 5))
def test_the_few_best_are_those_that_a_sort_would_put_first(
    offers: list[tuple[int, int]], count: int
) -> None:
    nearest: Nearest[int] = Nearest(count)
    for number, (failed, held) in enumerate(offers):
        nearest.offer(failed, held, number)
    order = sorted(range(len(offers)), key=lambda n: (offers[n][0], -offers[n][1], n))
    assert [*nearest] == order[:count]
