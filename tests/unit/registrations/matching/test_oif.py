"""OIF's strategies row by row: signatures, sig, memo, lattice and compile, each by its counters."""

from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Path
from registrations.filters.predicate import parse_predicate
from registrations.filters.propositional import parse_propositional
from registrations.matching import memo
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.compile_matcher import CompileMatcher
from registrations.matching.lattice import LatticeMatcher
from registrations.matching.matcher import Counters, Matcher
from registrations.matching.memo import MemoMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.signature_matcher import SigMatcher
from registrations.matching.signatures import required_properties, signature_of
from registrations.matching.spec import Spec, specs_of
from registrations.matching.strategies import STRATEGIES
from registrations.matching.thresholds import threshold_of
from tests.unit.registrations.matching.conditions import hierarchy
from tests.unit.registrations.matching.programs import Add, apply, seeded

JOE = "(and (or (= type 'error) (= type 'warning)) (= user 'Joe))"  # OIF-19


def filled(matcher: Matcher, *texts: str) -> Matcher:
    """Add filters in predicate form, numbered from 0."""
    filters = FilterMatcher(matcher)
    for id, text in enumerate(texts):
        filters.add(id, specs_of(parse_predicate(text)))
    return matcher


def event(**attributes: object) -> Event:
    return Event("d", "t", attributes)


def work(matcher: Matcher, given: Event) -> Counters:
    """Return the work of one event."""
    matcher.counters = Counters()
    matcher.match(given)
    return matcher.counters


# --- signatures ---

DEMANDED: list[tuple[str, set[str]]] = [
    (JOE, {"type", "user"}),
    ("(or (= a 1) (= b 2))", set()),
    ("(or (= a 1) (and (= b 2) (> a 3)))", {"a"}),
    ("(not (= a 1))", set()),
    ("(not (not (= a 1)))", set()),
    ("(and (= a 1) (not (exists b)))", {"a"}),
    ("(< a (+ b 1))", {"a", "b"}),
    ("(in a 1 2)", {"a"}),
    ("(prefix a 'x)", {"a"}),
    ("(exists a.b)", {"a"}),
    ("(= @source 'x)", set()),
    ("(= env.trace 'x)", set()),
    ("true", set()),
    ("(type 'd::t)", set()),
]


@pytest.mark.req("OIF-24")
@pytest.mark.parametrize(("text", "names"), DEMANDED)
def test_a_signature_has_the_properties_that_a_filter_requires(text: str, names: set[str]) -> None:
    assert required_properties(parse_predicate(text)) == names


def test_each_spec_of_the_filter_for_joe_requires_type_and_user() -> None:
    for node in (parse_predicate(JOE), parse_propositional("(and type user)")):
        assert {signature_of(spec) for spec in specs_of(node)} == {frozenset({"type", "user"})}


@pytest.mark.parametrize("make", [SigMatcher, MemoMatcher, LatticeMatcher])
def test_an_or_is_matched_by_an_event_with_one_of_its_fields(make: type[Matcher]) -> None:
    matcher = FilterMatcher(make())
    matcher.add(1, specs_of(parse_predicate("(or (= a 1) (= b 2))")))
    matcher.add(2, specs_of(parse_predicate("(not (= b 2))")))
    assert sorted(matcher.match(event(a=1))) == [1, 2]
    assert matcher.match(event(b=2)) == [1]


@pytest.mark.parametrize("make", [SigMatcher, MemoMatcher, LatticeMatcher])
def test_a_dotted_name_requires_its_first_step(make: type[Matcher]) -> None:
    matcher = filled(make(), "(= a.b 1)")
    assert matcher.match(event(a={"b": 1})) == matcher.match(event(**{"a.b": 1})) == [0]
    assert work(matcher, event(b=1)).touched == 0


# --- sig ---


def test_an_event_without_the_fields_evaluates_nothing() -> None:
    like_joe = (f"(and (in type 'error 'warning) (prefix user 'Joe{n:02}))" for n in range(100))
    matcher = filled(SigMatcher(), *like_joe)
    cost = work(matcher, event(x=1))
    assert (cost.compared, cost.touched, cost.evaluated) == (100, 0, 0)
    cost = work(matcher, event(type="error", user="Joe07"))
    assert (cost.compared, cost.touched, cost.evaluated) == (100, 100, 200)


# --- memo ---


def test_the_second_event_with_the_same_fields_compares_nothing() -> None:
    matcher = filled(MemoMatcher(), *(f"(and (= a {n}) (> b 1))" for n in range(50)), "(= c 1)")
    assert work(matcher, event(a=1, b=2)).compared == 51
    cost = work(matcher, event(a=3, b=9, nobodys=1))
    assert (cost.compared, cost.touched) == (0, 50)
    assert matcher.match(event(a=3, b=9)) == [3]


def test_a_change_counts_from_the_next_event() -> None:
    matcher = filled(MemoMatcher(), "(= a 1)", "(= b 1)")
    given = event(a=1, new=1)
    assert matcher.match(given) == [0]
    matcher.add(7, Spec(pairs=(("new", 1),)))
    assert sorted(matcher.match(given)) == [0, 7]
    matcher.remove(0)
    assert matcher.match(given) == [7]
    matcher.add(7, Spec(pairs=(("new", 2),)))
    assert matcher.match(given) == []


def test_the_fields_of_events_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "FIELD_SETS_MAX", 4)
    matcher = MemoMatcher()
    for id in range(10):
        matcher.add(id, Spec(pairs=((f"a{id}", 1),)))
    for id in range(10):
        assert matcher.match(event(**{f"a{id}": 1})) == [id]
        assert len(matcher._candidates) <= 4


# --- lattice ---


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_missing_signature_skips_its_supersets(order: tuple[int, ...]) -> None:
    """x: {a}, y: {a, b}, z: {a, b, c}."""
    pairs = [(("a", 1),), (("a", 1), ("b", 1)), (("a", 1), ("b", 1), ("c", 1))]
    matcher = LatticeMatcher()
    for id in order:
        matcher.add(id, Spec(pairs=pairs[id]))
    assert work(matcher, event(q=1)).compared == 1
    assert work(matcher, event(a=1)).compared == 2
    assert work(matcher, event(a=1, b=1)).compared == 3
    assert sorted(matcher.match(event(a=1, b=1, c=1))) == [0, 1, 2]


def test_unrelated_signatures_are_all_compared() -> None:
    matcher = LatticeMatcher()
    for id, name in enumerate("abcd"):
        matcher.add(id, Spec(pairs=((name, 1), ("x", 1))))
    assert work(matcher, event(x=1, b=1)).compared == 4
    assert matcher.match(event(x=1, b=1)) == [1]


def test_the_path_is_rebuilt_only_when_signatures_change() -> None:
    matcher = filled(LatticeMatcher(), "(= a 1)", "(= b 1)")
    assert work(matcher, event(a=1)).rebuilds == 1
    matcher.add(7, Spec(pairs=(("a", 2),)))
    assert work(matcher, event(a=1)).rebuilds == 0
    matcher.remove(7)
    assert work(matcher, event(a=1)).rebuilds == 0
    matcher.add(7, Spec(pairs=(("a", 2), ("b", 2))))
    assert work(matcher, event(a=1)).rebuilds == 1
    matcher.remove(7)
    assert work(matcher, event(a=1)).rebuilds == 1


# --- compile ---


@pytest.mark.parametrize("order", [("(> x 3)", "(> x 7)"), ("(> x 7)", "(> x 3)")])
def test_a_failed_threshold_decides_those_beyond_it(order: tuple[str, str]) -> None:
    matcher = filled(CompileMatcher(), *order)
    cost = work(matcher, event(x=2))
    assert (cost.evaluated, cost.shadowed) == (1, 1)
    assert len(matcher.match(event(x=5))) == 1
    assert len(matcher.match(event(x=8))) == 2


def test_a_shared_expression_is_evaluated_once() -> None:
    shared = [f"(and (> x 7) (= n {n}))" for n in range(25)]
    others = [f"(and (> x 7) (prefix m 'a{n}))" for n in range(25)]
    matcher = filled(CompileMatcher(), *shared, *others)
    cost = work(matcher, event(x=8, n=4))
    assert cost.evaluated == 1 + 25
    assert matcher.match(event(x=8, n=4)) == [4]
    cost = work(filled(CompileMatcher(), *shared), event(x=8, n=4))
    assert cost.evaluated == 1


def test_a_subscription_with_more_tests_is_in_the_then_part() -> None:
    matcher = filled(CompileMatcher(), "(> x 3)", "(and (> x 3) (= y 1) (prefix z 'a))")
    cost = work(matcher, event(x=2, y=1, z="a"))
    assert (cost.touched, cost.evaluated, cost.lookups) == (1, 1, 0)
    cost = work(matcher, event(x=4, y=1, z="a"))
    assert (cost.touched, cost.evaluated, cost.lookups) == (4, 2, 1)


def test_a_switch_finds_its_case_among_many() -> None:
    matcher = filled(CompileMatcher(), *(f"(= x {n})" for n in range(1_000)))
    cost = work(matcher, event(x=500))
    assert (cost.touched, cost.evaluated, cost.lookups) == (2, 0, 1)


THRESHOLDS: list[tuple[str, float, bool, bool]] = [
    ("(> x 3)", 3, True, True),
    ("(>= x 3)", 3, True, False),
    ("(< x 3)", -3, False, True),
    ("(<= x 3)", -3, False, False),
    ("(< 3 x)", 3, True, True),
    ("(>= 3 x)", -3, False, False),
]


@pytest.mark.parametrize(("text", "number", "large", "strict"), THRESHOLDS)
def test_thresholds_have_one_order(text: str, number: float, large: bool, strict: bool) -> None:
    found = threshold_of(parse_predicate(text))
    assert found == ((Path("x"), large), (number, strict))


@pytest.mark.parametrize("text", ["(> x '3)", "(> x true)", "(= x 3)", "(> x y)", "(not (> x 3))"])
def test_only_comparisons_with_numbers_are_thresholds(text: str) -> None:
    assert threshold_of(parse_predicate(text)) is None


def test_thresholds_of_a_list_and_of_other_types_agree_with_the_scan() -> None:
    numbers = [0, 3, 3.5, 2**53, 2**53 + 1, -1, float(2**53)]
    tests = [
        Compare(op, Path("x"), Const(number)) for op in ("<", "<=", ">", ">=") for number in numbers
    ]
    matcher, scan = CompileMatcher(), ScanMatcher()
    for id, test in enumerate(tests):
        matcher.add(id, Spec(tests=(test,)))
        scan.add(id, Spec(tests=(test,)))
    others: list[Any] = [[], [5, -5], "4", "x", True, None, {}, [[1]], ["4", -1, {}], 10**30]
    for value in (*numbers, *others):
        assert sorted(matcher.match(event(x=value))) == scan.match(event(x=value)), value


# --- selectable ---


def test_one_workload_has_equal_matches_under_every_strategy_each_with_its_own_counters() -> None:
    steps = list(seeded(3, 600))
    found: dict[str, list[list[int]]] = {}
    counters: dict[str, Counters] = {}
    for name, make in STRATEGIES.items():
        matcher, results = make(hierarchy), list[list[int]]()
        for step in steps:
            if isinstance(step, Event):
                results.append(sorted(matcher.match(step)))
            else:
                apply(matcher, step)
        found[name], counters[name] = results, matcher.counters
    assert all(results == found["scan"] for results in found.values())
    assert {"scan", "sig", "memo", "lattice", "compile"} < set(found)
    compared = [counters[name].compared for name in ("sig", "lattice", "memo", "scan")]
    assert compared[0] > compared[1] > 0 == compared[3]
    touched = [counters[name].touched for name in ("scan", "sig", "memo", "lattice")]
    assert touched[0] > touched[1] == touched[2] == touched[3] > 0


# --- removal ---


@pytest.mark.parametrize("name", [*STRATEGIES])
def test_nothing_is_left_after_removal(name: str) -> None:
    """`size`, `dump` and the fields of each strategy show it (SUN-09)."""
    matcher = STRATEGIES[name](hierarchy)
    added = {step.id for step in seeded(5, 1_500) if isinstance(step, Add)}
    for step in seeded(5, 1_500):
        if isinstance(step, Event):
            matcher.match(step)
        else:
            apply(matcher, step)
    for id in added:
        matcher.remove(id)
    assert (len(matcher), weight(matcher)) == (0, weight(STRATEGIES[name](hierarchy)))


def weight(found: object, seen: frozenset[int] = frozenset()) -> int:
    """Count the members of all dictionaries and lists of a matcher, at any depth."""
    if id(found) in seen:
        return 0
    seen |= {id(found)}
    if isinstance(found, dict):
        return len(found) + sum(weight(value, seen) for value in found.values())
    if isinstance(found, list):
        return len(found) + sum(weight(value, seen) for value in found)
    fields = getattr(found, "__dict__", {})
    inner = (value for key, value in fields.items() if key not in ("counters", "_made"))
    return sum(weight(value, seen) for value in inner)
