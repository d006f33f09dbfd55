"""The normal form says of every event what the tree says, and is bounded."""

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filter_source import FilterSource
from registrations.filters.ast import And, Exists, Node, Not, Or, Path
from registrations.filters.constant_tests import constant_result
from registrations.filters.contradictions import never
from registrations.filters.errors import FilterTooLarge
from registrations.filters.evaluate import holds
from registrations.filters.languages import parse
from registrations.filters.normal import NormalForm, always, normal, printed_parts
from registrations.filters.predicate import parse_predicate
from registrations.filters.printed import printed
from registrations.filters.propositional import parse_propositional
from tests.unit.registrations.filters.trees import NAMES, event, events, tests, trees, values


def form(text: str) -> NormalForm:
    return normal(parse_predicate(text))


@given(trees, events)
def test_holds_for_the_same_events_as_the_tree(node: Node, one: Event) -> None:
    try:
        found = normal(node)
    except FilterTooLarge:
        return
    assert holds(node, one) == any(all(holds(part, one) for part in parts) for parts in found)


@given(trees, trees, events)
@example(Exists(Path("a")), Exists(Path("b")), event({"a": 1}))
def test_de_morgan(one: Node, other: Node, seen: Event) -> None:
    pairs: list[tuple[Node, Node]] = [
        (Not(And((one, other))), Or((Not(one), Not(other)))),
        (Not(Or((one, other))), And((Not(one), Not(other)))),
        (Not(Not(one)), one),
    ]
    for left, right in pairs:
        assert holds(left, seen) == holds(right, seen)
        try:
            assert normal(left) == normal(right)
        except FilterTooLarge:
            continue


gates = st.sampled_from(("", "a", "b")).map(lambda text: text or None)


@given(st.fixed_dictionaries({"domain": gates, "type": gates, "application": gates}),
       st.dictionaries(st.sampled_from(NAMES), values, max_size=4))  # fmt: skip
def test_of_pairs_it_is_found_without_a_search(gate: dict[str, Any], pairs: dict[str, Any]) -> None:
    source = {**gate, "attributes": pairs}
    found = FilterSource("pairs", source).form()
    assert found == normal(parse("pairs", source).node)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(and (= a 1) (= b 2))", "(and (= b 2) (= a 1) (= a 1))"),
        ("(or (= a 1) (and (= a 1) (= b 2)))", "(= a 1)"),
        ("(= 1 a)", "(= a 1)"),
        ("(in a 1)", "(= a 1)"),
        ("(= a 1.0)", "(= a 1)"),
        ("(not (in a 2.0 -0.0))", "(not (in a 2 0))"),
        ("(and (exists a) (or (exists b) (exists c)))",
         "(or (and (exists a) (exists b)) (and (exists c) (exists a)))"),
        ("(or false (= a 1))", "(and true (= a 1))"),
        ("(and (= a 1) (not (= a 1)))", "false"),
        ("(and (= @type 'x) (= @type 'y))", "(not true)"),
        ("(or (= a 1) true)", "true"),
        ('(and (type "*::*") (= a 1))', "(= a 1)"),
    ],
)  # fmt: skip
def test_the_same_in_other_words_has_one_form(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(= a 1)", "(= a true)"),
        ("(= a 1)", '(= a "1")'),
        ("(= a (+ b 1))", "(= a (+ b 1.0))"),  # integers are added exactly
        ("(and (= a 1) (= a 2))", "false"),  # of a list
        ("(and (= @application 'x) (= @application 'y))", "false"),  # there may be several
        ("(not (< a 1))", "(>= a 1)"),  # `a` may be missing
        ("(= a null)", "(not (exists a))"),
    ],
)
def test_filters_that_differ_for_some_event_have_different_forms(one: str, other: str) -> None:
    assert form(one) != form(other)


def test_no_alternative_is_never_and_an_empty_one_is_always() -> None:
    assert form("false") == ()
    assert not always(form("false"))
    assert always(form("true"))
    assert not always(form("(= a 1)"))


def test_an_explosion_is_refused() -> None:
    """2^64 alternatives."""
    many = " ".join(f"(or (exists a{n}) (exists b{n}))" for n in range(64))
    with pytest.raises(FilterTooLarge) as caught:
        form(f"(and {many})")
    bound = {"alternatives_max": limits.FILTER_ALTERNATIVES_MAX}
    assert caught.value.details == {**bound, "line": 1, "column": 2}
    assert "expands to at most 64 alternatives" in caught.value.message


def either(*names: str) -> str:
    return f"(or {' '.join(names)})"


def test_the_same_alternatives_over_and_over_are_little_work() -> None:
    """Each pair of them joined came to 1,600, which were compared with each other, eleven times."""
    many = either(*(f"(exists x{n})" for n in range(40)))
    assert form(f"(and {' '.join([many] * 11)} (exists y))") == form(f"(and {many} (exists y))")
    few = either(*(f"(exists x{n})" for n in range(20)))
    assert form(f"(and {few} {many} {few})") == form(few)


def test_normalization_work_with_a_small_result_is_bounded() -> None:
    """Every `or` leaves a few alternatives and hundreds that are compared for them."""
    same = " ".join(f"x{n}" for n in range(10))
    ors = [
        either(same, *(f"(and x{10 + (2 * at + n) % 10} y{(at + 2 * n) % 6})" for n in range(2)))
        for at in range(30)
    ]
    node = parse_propositional(f"(and {' '.join(ors)})")
    began = time.thread_time()
    with pytest.raises(FilterTooLarge, match="too much work") as caught:
        normal(node)
    assert time.thread_time() - began < 0.2  # about 10 ms
    assert caught.value.details["steps_max"] == limits.FILTER_STEPS_MAX


def test_as_many_alternatives_as_are_allowed() -> None:
    wide = " ".join(f"(exists a{n})" for n in range(limits.FILTER_ALTERNATIVES_MAX))
    assert len(form(f"(or {wide})")) == limits.FILTER_ALTERNATIVES_MAX
    with pytest.raises(FilterTooLarge):
        form(f"(or {wide} (exists b))")


def test_as_many_tests_as_are_allowed() -> None:
    """64 conjunctions of 64 tests; with one test more in each they are refused."""
    either = " ".join(f"(or (= a{n} 1) (= b{n} 1))" for n in range(6))
    others = [f"(exists c{n})" for n in range(limits.FILTER_TESTS_MAX // 64 - 6)]
    assert sum(map(len, form(f"(and {either} {' '.join(others)})"))) == limits.FILTER_TESTS_MAX
    with pytest.raises(FilterTooLarge) as caught:
        form(f"(and {either} {' '.join(others)} (exists d))")
    assert caught.value.details == {"tests_max": limits.FILTER_TESTS_MAX}
    assert "4,096 tests" in caught.value.message


# --- constant tests ---


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("(= 1 2)", ["never_matches"]),
        ("(= 1 1)", ["always_matches"]),
        ("(= (+ 1 1) 2)", ["always_matches"]),
        ("(= (/ 1 0) 2)", ["never_matches"]),
        ('(= @priority "5")', ["never_matches"]),
        ('(!= "5" @priority)', ["always_matches"]),
        ("(in @type 5)", ["never_matches"]),
        ("(= @id 5)", ["never_matches"]),
        ("(= env.a true)", ["never_matches"]),
        ("(> a true)", ["never_matches"]),
        ("(> a null)", ["never_matches"]),
        ("(<= null a)", ["never_matches"]),
        ('(> (+ a 1) "x")', ["never_matches"]),
        ('(= (+ a 1) "2")', ["never_matches"]),
        ("(prefix @priority '5)", ["never_matches"]),
        ("(not (exists @priority))", ["never_matches"]),
        ("(or (exists a) (not (exists a)))", ["always_matches"]),
        ("(or (= b 1) (not (= a 1)) (and (= c 1) (= c 2)) (= a 1.0))", ["always_matches"]),
        ("(and (= a 1) (not (= a 1)))", ["never_matches"]),
        ("(and (= @type 'a) (!= @type 'a))", ["never_matches"]),
        ('(and (type "x::a") (= @domain "y"))', ["never_matches"]),
        ("(and (> @priority 5) (< @priority 3))", ["never_matches"]),
        ("(and (> @priority 5) (<= @priority 5))", ["never_matches"]),
        ("(and (= @priority 5) (> @priority 5))", ["never_matches"]),
        ("(and (= env.a 'x) (= env.a 'y))", ["never_matches"]),
        ("(and (not (exists a)) (> a 1))", ["never_matches"]),
        ("(or (and (not (exists a)) (= a 1)) (and (= @key 'x) (= @key 'y)))", ["never_matches"]),
        # and what is not
        ("(and (>= @priority 5) (<= @priority 5))", []),
        ("(and (> @priority '5) (< @priority '10))", []),
        ("(and (> @key 'b) (< @key 'a))", []),  # not found: a text may be compared as a number
        ("(and (= @application 'x) (= @application 'y))", []),
        ("(and (> a 5) (< a 3))", []),  # a list
        ("(and (not (exists a)) (not (= a 1)))", []),
        ("(or (and (= @key 'x) (= @key 'y)) (= a 1))", []),
        ('(> @priority "5")', []),  # a text that is a number
        ('(> @key 5)', []),
        ("(!= @type 5)", []),
        ("(or (= @type 'a) (= @type 'b))", []),
        ("(or (> a 5) (<= a 5))", []),  # `a` may be missing
        ("(= a null)", []),
        ("(and (= a 1) (= a 2))", []),
    ],
)  # fmt: skip
def test_a_filter_that_always_or_never_holds_has_a_warning(text: str, warnings: list[str]) -> None:
    assert FilterSource("predicate", text).summary().warnings == warnings


@given(tests, events)
def test_a_certain_result_holds_for_every_event(test: Node, one: Event) -> None:
    known = constant_result(test)
    assert known is None or holds(test, one) is known


@given(st.lists(st.one_of(tests, tests.map(Not)), min_size=2, max_size=3), events)
def test_what_is_warned_of_as_matching_nothing_matches_no_event(
    items: list[Node], one: Event
) -> None:
    node = And(tuple(items))
    assert not (never(normal(node)) and holds(node, one))


@given(trees)
def test_its_parts_come_in_the_order_of_their_words(node: Node) -> None:
    try:
        found = normal(node)
    except FilterTooLarge:
        return
    words = [sorted(map(printed, parts)) for parts in found]
    assert words == sorted(words)
    assert [list(zip(*each, strict=True))[:1] for each in printed_parts(found)] == [
        [tuple(one)] if one else [] for one in words
    ]


def test_a_test_that_shares_its_place_with_others_can_make_two_alternatives_one() -> None:
    """`b` is asked for by both in the end, and then the first asks for less."""
    assert form("(and (or (exists a) (and (exists a) (exists b)) (exists c)) (exists b))") == form(
        "(or (and (exists a) (exists b)) (and (exists c) (exists b)))"
    )
    assert form("(and (or (exists a) (and (exists b) (exists c))) (or (exists b) (exists a)))") == (
        form("(or (exists a) (and (exists b) (exists c)))")
    )
