"""What of a filter counts: what is tried for every event, and little of what is behind a key."""

import pytest

from eventhub import limits
from registrations.lang.normal import normal
from registrations.lang.predicate import parse_predicate
from registrations.match.budget import budget_of
from tests.benchmarks import bombs

FREE = limits.FILTER_FOUND_FREE
MANY = " ".join(f'(not (wildcard note "*{n}*q"))' for n in range(FREE))
SUMS = "(> (+ a b c) 3)"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        # found by what an event has, or by its gate, or one with all that ask for the same
        ("true", 0),
        ("false", 0),
        ("(= a 1)", 0),
        ('(and (= @domain "d") (= @type "t"))', 0),
        ('(type "d::order")', 0),
        ("(> load 5)", 0),
        ('(in state "on" "off")', 0),
        ('(and (= a 1) (wildcard note "*b*c*"))', 0),
        ('(and (prefix node "n1-") (> load 5) (not (exists q)))', 0),
        ('(or (= a 1) (and (> load 5) (substring note "b")))', 0),
        # tried for every event
        ("(exists a)", 0),
        ("(not (exists a))", 1),
        ("(!= a 1)", 1),
        ('(substring note "b")', 1),
        ('(prefix note "")', 1),
        ('(and (= @domain "d") (= @type "t") (substring note "b"))', 1),
        ('(= @source "s")', 1),
        ("(not (= a 1))", 1),
        ("(or (= a 1) (not (exists b)) (!= c 1))", 2),
        ('(wildcard note "a*b")', 1),
        ('(wildcard note "*a*b*c*")', 3),
        (SUMS, 3),
        (f"(not (in a {' '.join(map(str, range(80)))}))", 11),
        # behind a key: what is more than people write
        (f"(and (= a 1) {MANY})", 0),
        (f"(and (= a 1) {MANY} (> b 5) (> c 5))", 2),
        (f"(and (> a 1) {MANY})", 1),
        (f"(or (and (= a 1) {MANY}) (and (= b 1) {MANY}))", FREE),
        (f"(or (and (= a 1) {MANY}) {SUMS})", 3),
    ],
)
def test_what_counts(text: str, counts: int) -> None:
    assert budget_of(normal(parse_predicate(text))) == counts


def test_the_dearest_filter_counts_so_that_some_ten_are_all() -> None:
    counts = budget_of(normal(parse_predicate(bombs.dearest(1))))
    assert limits.FILTERS_TRIED_MAX / counts < 12
    behind = f'(and (= kind "x") {bombs.dearest(1)})'
    assert budget_of(normal(parse_predicate(behind))) == counts - FREE
