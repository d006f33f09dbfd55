"""The closure of many filters lets through what one of them does, and where it is too large more,
never less; and what is said of a shape holds for every event of it.
"""

from random import Random
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import Node
from registrations.filters.closure import covers_by_value, union, value_summary
from registrations.filters.closure.covers_by_value import PreparedAlternative
from registrations.filters.closure.implied import follows
from registrations.filters.closure.shapes import Shape, interest_in, parse_shape
from registrations.filters.closure.union import (
    EVERYTHING,
    Closure,
    ClosureBounds,
    InterestCollector,
)
from registrations.filters.evaluate import holds
from registrations.filters.languages import parse
from registrations.filters.normal import normal
from registrations.filters.printed import printed
from registrations.interest.builder import ClosureBuilder
from tests.unit.registrations.filters.closure.vocabulary import (
    closure_of,
    events,
    filter_of,
    hierarchy,
)

EVENTS = list(events())


def tree(text: str) -> Node:
    return parse("predicate", text.replace("'", '"')).node


def closure(*texts: str, **bounds: int) -> Closure:
    return closure_of((normal(tree(text)) for text in texts), ClosureBounds(**bounds))


def shown(found: Closure) -> str:
    return printed(found.node())


@pytest.mark.req("OIF-07")
def test_a_closure_matches_an_event_iff_one_of_its_filters_does() -> None:
    random = Random(4)
    left_out = matched = 0
    for _ in range(60):
        nodes = [filter_of(random, random.randrange(3)) for _ in range(random.randrange(1, 9))]
        forms = [normal(node) for node in nodes]
        found = closure_of(forms)
        assert not found.widened
        left_out += len({parts for form in forms for parts in form}) - len(found.form)
        for event in random.sample(EVENTS, 60):
            expected = any(holds(node, event, hierarchy) for node in nodes)
            assert found.matches(event, hierarchy) == expected, (nodes, event)
            assert holds(found.node(), event, hierarchy) == expected
            matched += expected
    assert left_out > 30, "hardly anything is covered"
    assert 600 < matched < 3_000


def test_a_covered_filter_is_dropped_in_any_order() -> None:
    texts = ["(> x 7)", "(and (> x 5) (= y 1))", "(> x 5)", "(= x 6)", "(exists z)", "(= z 'q')"]
    for _ in range(3):
        texts = [*texts[2:], *texts[:2]]
        assert shown(closure(*texts)) == "(or (> x 5) (exists z))"
    assert shown(closure()) == "false"
    assert shown(closure("(> x 1)", "true")) == "true"


NUMBERS = [f"(and (= @type '{type}') (= n {n}))" for type in "ab" for n in range(20)]
USERS = [f"(= user '{site}-{n:03}')" for site in ("basel", "bern") for n in range(200)]
TYPES = [f"(and (= @type 'app.{n}') (> x {n}))" for n in range(20)]


@pytest.mark.parametrize(
    ("texts", "bounds", "expected", "widened"),
    [
        (NUMBERS, {}, 40, False),
        (NUMBERS, {"alternatives_max": 2}, 2, False),  # the values of each type, in one test
        (NUMBERS, {"exact_max": 5}, 2, False),
        (NUMBERS, {"tests_max": 5}, 2, False),
        (NUMBERS, {"compared_max": 2}, 40, False),  # what is covered is not found, that is all
        (TYPES, {"tests_max": 9}, 1, True),
        (NUMBERS, {"alternatives_max": 1}, '(in @type "a" "b")', True),
        (NUMBERS, {"chars_max": 100},
         '(or (and (<= n 19) (= @type "a") (>= n 0))'
         ' (and (<= n 19) (= @type "b") (>= n 0)))', True),
        (NUMBERS, {"chars_max": 50},
         '(or (and (= @type "a") (exists n)) (and (= @type "b") (exists n)))', True),
        (NUMBERS, {"chars_max": 25}, '(in @type "a" "b")', True),
        (NUMBERS, {"chars_max": 10}, "true", True),
        (USERS, {}, 1, False),
        (USERS, {"chars_max": 800, "alternatives_max": 5},
         '(or (prefix user "basel-") (prefix user "bern-0") (prefix user "bern-1"))', True),
        (USERS, {"chars_max": 20}, "(exists user)", True),
        (TYPES, {"exact_max": 4, "alternatives_max": 3}, 1, True),
        (TYPES, {"exact_max": 4, "alternatives_max": 3, "chars_max": 60},
         '(and (exists x) (prefix @type "app."))', True),
    ],
)  # fmt: skip
def test_a_closure_that_is_too_large_is_gathered_then_widened_and_marked(
    texts: list[str], bounds: dict[str, int], expected: int | str, widened: bool
) -> None:
    found = closure(*texts, **bounds)
    assert found.widened == widened
    if isinstance(expected, int):
        assert len(found.form) == expected
    else:
        assert shown(found) == expected


def test_many_tests_are_not_compared_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test is compared with those of its path, and what is left over of the work is not done."""
    calls = []

    def counted(test: Node, fact: Node) -> bool:
        calls.append(test)
        return follows(test, fact)

    monkeypatch.setattr(covers_by_value, "follows", counted)
    bounds = [f"(> x{n} {{0}})" for n in range(300)]
    found = closure(*(f"(and {' '.join(bounds)} (> z{k} 1))".format(k) for k in range(6)))
    assert (len(found.form), found.widened) == (6, False)
    assert 1_000 < len(calls) < 10_000
    calls.clear()
    prefixes = [f"(prefix x '{{0}}{n}')" for n in range(100)]
    texts = [f"(and {' '.join(prefixes)})".format(k) for k in "abcdefgh"]
    assert len(closure(*texts, compared_max=1_000).form) == 8
    assert 500 < len(calls) <= 1_000


def test_the_thread_that_makes_it_rests_between_short_steps() -> None:
    union, rested = InterestCollector(), []
    for number in range(50):
        union.add(normal(tree(f"(> x{number} 1)")))
    assert len(union.closure(lambda: rested.append(None)).form) == 50
    assert len(rested) >= 150


def test_forms_are_kept_while_they_are_few_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLOSURE_TESTS_MAX", 40)
    builder = ClosureBuilder(None)  # type: ignore[arg-type]  # the tables are not read
    text = f"(and {' '.join(f'(> x{n} {{0}})' for n in range(9))})"
    for number in range(22):
        builder._add_in_thread(InterestCollector(), [("", text.format(number))])
        assert sum(len(parts) for form in builder._forms.values() for parts in form) <= 40
    assert builder._forms


def test_so_many_that_not_all_values_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes of the texts, and a range of the numbers; beyond the groups, types alone."""
    monkeypatch.setattr(limits, "CLOSURE_VALUES_MAX", 50)
    monkeypatch.setattr(limits, "CLOSURE_GROUPS_MAX", 4)
    found = closure(*USERS[:100], *(f"(= n {n})" for n in range(100)), exact_max=20)
    prefixes = " ".join(f'(prefix user "basel-0{digit}")' for digit in range(10))
    assert shown(found) == f"(or (and (<= n 99) (>= n 0)) {prefixes})"
    found = closure(*(f"(and (= @type 't{n}') (= a{n} 1))" for n in range(9)), exact_max=2)
    assert shown(found) == ('(in @type "t0" "t1" "t2" "t3" "t4" "t5" "t6" "t7" "t8")')
    assert found.widened


def test_a_closure_matches_all_filters_also_those_added_after_it_was_computed() -> None:
    random = Random(7)
    steps = set()
    for _ in range(250):
        bounds = ClosureBounds(
            random.randrange(1, 5), random.randrange(1, 5), random.choice((40, 999))
        )
        union, nodes = InterestCollector(bounds), []
        for _ in range(random.randrange(2, 6)):
            some = [filter_of(random) for _ in range(random.randrange(1, 6))]
            nodes += some
            for node in some:
                union.add(normal(node))
            found = union.closure()
            steps.add((found.widened, found == EVERYTHING))
            for event in random.sample(EVENTS, 20):
                if any(holds(node, event, hierarchy) for node in nodes):
                    assert found.matches(event, hierarchy), (nodes, event)
                elif not found.widened:
                    assert not found.matches(event, hierarchy), (nodes, event)
    assert len(steps) == 3
    union.match_everything()
    assert union.closure() == EVERYTHING


def test_a_widened_closure_never_loses_an_interest() -> None:
    random = Random(5)
    seen = set()
    for _ in range(150):
        nodes = [filter_of(random) for _ in range(random.randrange(2, 9))]
        bounds = ClosureBounds(3, alternatives_max=random.randrange(1, 4))
        found = closure_of(map(normal, nodes), bounds)
        seen.add((found.widened, found == EVERYTHING))
        for event in random.sample(EVENTS, 30):
            if any(holds(node, event, hierarchy) for node in nodes):
                assert found.matches(event, hierarchy), (nodes, event)
    assert len(seen) == 3


@pytest.mark.parametrize("mistake", ["covers", "keys", "values"])
def test_a_planted_mistake_is_found(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    if mistake == "covers":
        monkeypatch.setattr(
            PreparedAlternative, "covers", lambda self, other, work: other.tests <= self.facts
        )
        with pytest.raises(AssertionError):
            test_a_closure_matches_an_event_iff_one_of_its_filters_does()
    elif mistake == "keys":
        monkeypatch.setattr(union, "_keys_of", lambda known: {union._key_of(known)})
        with pytest.raises(AssertionError):
            test_a_covered_filter_is_dropped_in_any_order()
    else:
        monkeypatch.setattr(value_summary, "_there", lambda path: (tree("(exists y)"),))
        with pytest.raises(AssertionError):
            test_a_closure_matches_all_filters_also_those_added_after_it_was_computed()


# --- shapes ---

FILTERS = closure("(and (= @type 'a') (> x 5))", "(and (type 'd::b') (not (exists y)))")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"type": "a", "attributes": {"x": 6}}, "yes"),
        ({"type": "a", "attributes": {"x": 5}}, "no"),
        ({"type": "a"}, "maybe"),
        ({"type": "c"}, "no"),
        ({"attributes": {"x": 6}}, "maybe"),
        ({"attributes": {"x": 5}}, "maybe"),  # b, perhaps
        ({"attributes": {"x": 5, "y": 1}}, "no"),
        ({"type": "b", "domain": "d", "attributes": {"y": None}}, "no"),
        ({"type": "b", "domain": "d"}, "maybe"),
        ({"type": "ab", "domain": "d"}, "maybe"),  # a declared subtype of b
        ({"type": "b", "domain": "e"}, "no"),
        ({}, "maybe"),
    ],
)
def test_interest_in_a_shape_is_yes_no_or_maybe(shape: dict[str, Any], expected: str) -> None:
    assert interest_in(FILTERS, parse_shape(shape), hierarchy) == expected


def test_a_widened_closure_never_answers_yes() -> None:
    shape = parse_shape({"type": "a"})
    assert interest_in(EVERYTHING, shape) == "maybe"
    assert interest_in(Closure(EVERYTHING.form), shape) == "yes"
    assert interest_in(Closure(), shape) == "no"


def test_the_answer_for_a_shape_holds_for_each_of_its_events() -> None:
    random = Random(11)
    answers = []
    for _ in range(400):
        found = closure_of([normal(filter_of(random)) for _ in range(2)])
        event = random.choice(EVENTS)
        shape, fits = _part_of(random, event)
        answer = interest_in(found, shape, hierarchy)
        answers.append(answer)
        for other in [event, *fits]:
            if answer != "maybe":
                assert found.matches(other, hierarchy) == (answer == "yes"), (found, shape, other)
    assert min(answers.count(answer) for answer in ("yes", "no", "maybe")) > 20


def _part_of(random: Random, event: Event) -> tuple[Shape, list[Event]]:
    """Return something that is known of an event, and others of which it is true too."""
    known = {name for name in ("domain", "type", "attributes") if random.random() < 0.6}
    if not event.domain:
        known.discard("domain")
    attributes = {n: v for n, v in event.attributes.items() if random.random() < 0.7}
    fields: dict[str, Any] = {"domain": event.domain, "type": event.type, "attributes": attributes}
    shape = parse_shape({name: fields[name] for name in known})
    fits = [
        other
        for other in random.sample(EVENTS, 200)
        if all(getattr(other, name) == getattr(event, name) for name in known - {"attributes"})
        and ("attributes" not in known or _holds_all(other.attributes, attributes))
    ]
    return shape, fits[:10]


def _holds_all(found: dict[str, Any], interest_in: dict[str, Any]) -> bool:
    return all(
        name in found and type(found[name]) is type(value) and found[name] == value
        for name, value in interest_in.items()
    )
