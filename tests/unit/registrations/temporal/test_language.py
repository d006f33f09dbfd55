"""The parser of the temporal language: what it reads, and where its errors are."""

import pytest

from eventhub.base import limits
from registrations.filters.ast import And, Compare, Const, Path, Truth
from registrations.temporal.errors import TemporalSyntax, TemporalTooLarge
from registrations.temporal.expressions import printed_test
from registrations.temporal.language import parse_temporal
from registrations.temporal.plan import planned


def test_a_pattern_is_parsed_into_its_parts() -> None:
    found = parse_temporal("""(memory 5) ; a comment (
        (event (time ?t1) (`user id` ?u) (type 'error) (where (> size 9)))
        (event (@time ?t2) (@sequence ?s) (env.trace "a;b"))
        (test (< ?t1 ?t2)) (not (event (time ?t)) (test (< ?t1 ?t ?t2)))""")
    assert found.memory == 5
    first, second = found.events
    assert first.filter == And(
        (Compare("=", Path("type"), Const("error")), Compare(">", Path("size"), Const(9)))
    )
    assert [(path, variable.name) for path, variable in first.bindings] == [
        (Path("time"), "t1"),
        (Path("user id"), "u"),
    ]
    assert second.filter == Compare("=", Path("trace", "environment"), Const("a;b"))
    assert [path.name for path, _ in second.bindings] == ["time", "sequence"]
    (absent,) = found.absent
    assert absent.event.filter == Truth(True)
    assert absent.text() == "(not (event (time ?t)) (test (and (< ?t1 ?t) (< ?t ?t2))))"
    assert first.text() == (
        '(event (time ?t1) (`user id` ?u) (where (and (= type "error") (> size 9))))'
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("(< ?a ?b ?c)", "(and (< ?a ?b) (< ?b ?c))"),
        ("(eq ?a ?b ?c)", "(and (= ?a ?b) (= ?a ?c))"),
        ("(neq ?a ?b ?c)", "(and (!= ?a ?b) (!= ?a ?c) (!= ?b ?c))"),
        ("(>= ?a 5)", "(>= ?a 5)"),
        ("(not (or (= ?a 'x) (< ?b ?c)))", '(not (or (= ?a "x") (< ?b ?c)))'),
        ("(< (+ ?a ?b 1) ?c)", "(< (+ (+ ?a ?b) 1) ?c)"),
    ],
)
def test_a_comparison_of_several_values_is_one_of_pairs(written: str, meant: str) -> None:
    found = parse_temporal(f"(event (a ?a) (b ?b) (c ?c)) (test {written})")
    assert [printed_test(test) for test in found.tests] == [meant]


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, 1, "at least one"),
        ("; nothing", 1, 1, "at least one"),
        ("(memory 5)", 1, 1, "at least one"),
        ("(event (a ?a))\n(test (< ?a ?b))", 2, 13, r"binds \?b"),
        ("(event (a ?a)) (not (event (b ?b))) (test (< ?a ?b))", 1, 49, "its own tests only"),
        ("(event (a ?a)) (not (event (b ?b)) (test (< ?b ?c)))", 1, 48, r"binds \?c"),
        ("(events (a ?a))", 1, 2, r"Expected \(event"),
        ("event", 1, 1, r"Expected \(event"),
        ("(event a)", 1, 8, r"Expected \(field"),
        ("(event (a ?a ?b))", 1, 8, r"Expected \(field"),
        ("(event (a b))", 1, 11, "Expected a variable"),
        ("(event (a ?))", 1, 11, "Expected a variable"),
        ("(event (?a ?b))", 1, 9, "Expected a field"),
        ("(event (5 ?b))", 1, 9, "Expected a field"),
        ("(event (@colour ?b))", 1, 9, "no field @colour"),
        ("(event (a: ?b))", 1, 9, "back quotes"),
        ("(event (@sequence 5))", 1, 9, "compared in a test"),
        ("(event (a (= b 1)))", 1, 9, "where filter"),
        ("(event (where (like a)))", 1, 16, "expected one of"),
        ("(event (a ?a)) (test)", 1, 17, "takes one test"),
        ("(event (a ?a)) (test ?a)", 1, 22, "Expected a test"),
        ("(event (a ?a)) (test (lt ?a 5))", 1, 23, "Expected one of: = eq"),
        ("(event (a ?a)) (test (< ?a))", 1, 23, "at least two"),
        ("(event (a ?a)) (test (< ?a a))", 1, 28, "Expected a variable"),
        ("(event (a ?a)) (test (< ?a (sin 5)))", 1, 29, "one of: +"),
        ("(event (a ?a)) (test (< ?a (+ 5)))", 1, 29, "at least two"),
        ("(event (a ?a)) (test (not))", 1, 23, "takes one test"),
        ("(event (a ?a)) (not)", 1, 17, "an event and its tests"),
        ("(event (a ?a)) (not (test (< ?a 1)))", 1, 22, r"Expected \(event"),
        ("(event (a ?a)) (not (event (b 1)) (event (c 1)))", 1, 36, r"Expected \(test"),
        ("(event (a ?a)) (memory 0)", 1, 17, "from 1"),
        ("(event (a ?a)) (memory true)", 1, 17, "from 1"),
        ("(memory 5) (event (a ?a)) (memory 6)", 1, 28, "stated already"),
        ("(event (a ?a)", 1, 1, "not closed"),
        ("(event (a ?a)))", 1, 15, "no matching"),
        ('(event (a "x))', 1, 11, "no closing"),
    ],
)
def test_errors_have_the_position(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(TemporalSyntax, match=says) as caught:
        parse_temporal(text)
    assert caught.value.details == {"line": line, "column": column}
    assert (caught.value.status, caught.value.code) == (400, "temporal_syntax")


EVENT = "(event (a ?a)) "


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (f"(memory {limits.TEMPORAL_MEMORY_MAX + 1}) {EVENT}", "memory_max"),
        (EVENT * (limits.TEMPORAL_EVENTS_MAX + 1), "events_max"),
        (f"{EVENT * limits.TEMPORAL_EVENTS_MAX}(not (event (b 1)))", "events_max"),
        (f"(event {' '.join(f'(a ?a{i})' for i in range(65))})", "variables_max"),
        (f"{EVENT}(test (<{' ?a' * 17}))", "arguments_max"),
        (EVENT + f"(test (neq{' ?a' * 16}))" * 3, "tests_max"),
        (EVENT + " " * limits.FILTER_CHARS_MAX, "chars_max"),
        (EVENT + "(test (= ?a 1)) " * 340, "parts_max"),
        (EVENT + "(test " + "(not " * 40 + "(= ?a 1)" + ")" * 41, "depth_max"),
    ],
)
def test_a_pattern_beyond_a_limit_is_refused(text: str, bound: str) -> None:
    with pytest.raises(TemporalTooLarge) as caught:
        parse_temporal(text)
    assert bound in caught.value.details
    assert {"line", "column"} <= caught.value.details.keys()
    assert "filter" not in caught.value.message
    assert caught.value.status == 422


def test_a_filter_that_expands_into_too_many_alternatives_is_refused() -> None:
    clauses = " ".join(f"(or (= a{i} 1) (= b{i} 1))" for i in range(12))
    with pytest.raises(TemporalTooLarge):
        planned(parse_temporal(f"(event (where (and {clauses})))"))


def test_events_that_share_an_equality_are_joined_first() -> None:
    """A cartesian product of the first two would be examined otherwise."""
    plan = planned(
        parse_temporal("""
        (event (a ?a)) (event (b ?b)) (event (a ?c)) (event (b ?b) (a ?a))
        (test (= ?a ?c))""")
    )
    assert [join.number for join in plan.joins] == [0, 2, 3, 1]
    assert [len(join.own) for join in plan.joins] == [0, 1, 1, 1]
    assert all(join.check is None for join in plan.joins)


def test_a_test_of_one_event_is_part_of_its_memory() -> None:
    plan = planned(
        parse_temporal("""
        (event (a ?a) (b ?b)) (event (c ?c) (d ?c))
        (test (and (< ?a ?b 5) (= ?b 3) (< ?c ?a)))""")
    )
    first, second = plan.joins
    found = [printed_test(test) for test in first.alpha.tests]
    assert found == ["(< ?0 ?1)", "(< ?1 5)", "(= ?1 3)"]
    assert [printed_test(test) for test in second.alpha.tests] == ["(= ?0 ?1)"]
    assert second.check is not None
