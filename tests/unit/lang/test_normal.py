"""The normal form says of every event what the tree says, and is bounded."""

import pytest
from hypothesis import example, given

from eventhub import limits
from eventhub.event.envelope import Event
from registrations.errors import FilterTooLarge
from registrations.lang.ast import And, Exists, Node, Not, Or, Path
from registrations.lang.evaluate import holds
from registrations.lang.normal import Form, always, normal
from registrations.lang.predicate import parse_predicate
from tests.unit.lang.trees import event, events, trees


def form(text: str) -> Form:
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
def test_what_differs_for_some_event_has_two(one: str, other: str) -> None:
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
    assert caught.value.details == {"alternatives_max": limits.FILTER_ALTERNATIVES_MAX}


def test_as_many_alternatives_as_are_allowed() -> None:
    wide = " ".join(f"(exists a{n})" for n in range(limits.FILTER_ALTERNATIVES_MAX))
    assert len(form(f"(or {wide})")) == limits.FILTER_ALTERNATIVES_MAX
    with pytest.raises(FilterTooLarge):
        form(f"(or {wide} (exists b))")
