"""The closure of many filters lets through what one of them does, and where it is too large more,
never less; and what is said of a shape holds for every event of it.
"""

from random import Random
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.closure import union
from registrations.closure.covering import Known
from registrations.closure.shapes import Shape, parse_shape, wanted
from registrations.closure.union import EVERYTHING, Bounds, Closure, closure_of
from registrations.lang.ast import Node
from registrations.lang.evaluate import holds
from registrations.lang.languages import parse
from registrations.lang.normal import normal
from registrations.lang.printed import printed
from tests.unit.closure.vocabulary import events, filter_of, kin

EVENTS = list(events())


def tree(text: str) -> Node:
    return parse("predicate", text.replace("'", '"')).node


def closure(*texts: str, **bounds: int) -> Closure:
    return closure_of((normal(tree(text)) for text in texts), Bounds(**bounds))


def shown(found: Closure) -> str:
    return printed(found.node())


@pytest.mark.req("OIF-07")
def test_a_closure_matches_an_event_iff_one_of_its_filters_does() -> None:
    random = Random(3)
    left_out = matched = 0
    for _ in range(60):
        nodes = [filter_of(random, random.randrange(3)) for _ in range(random.randrange(1, 9))]
        forms = [normal(node) for node in nodes]
        found = closure_of(forms)
        assert not found.widened
        left_out += len({parts for form in forms for parts in form}) - len(found.form)
        for event in random.sample(EVENTS, 60):
            expected = any(holds(node, event, kin) for node in nodes)
            assert found.matches(event, kin) == expected, (nodes, event)
            assert holds(found.node(), event, kin) == expected
            matched += expected
    assert left_out > 30, "hardly anything is covered"
    assert 600 < matched < 3_000


def test_what_another_one_covers_is_left_out_in_whatever_order_it_comes() -> None:
    texts = ["(> x 7)", "(and (> x 5) (= y 1))", "(> x 5)", "(= x 6)", "(exists z)", "(= z 'q')"]
    for _ in range(3):
        texts = [*texts[2:], *texts[:2]]
        assert shown(closure(*texts)) == "(or (> x 5) (exists z))"
    assert shown(closure()) == "false"
    assert shown(closure("(> x 1)", "true")) == "true"


TYPED = '(or (and (= @type "a") (exists n)) (and (= @type "b") (exists n)))'


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, 40),
        ({"alternatives_max": 2}, TYPED),
        ({"chars_max": 100}, TYPED),
        ({"chars_max": 30}, '(or (= @type "a") (= @type "b"))'),
        ({"alternatives_max": 1}, "true"),
        ({"compared_max": 2}, TYPED),
    ],
)
def test_a_closure_that_is_too_large_is_widened_and_says_so(
    bounds: dict[str, int], expected: int | str
) -> None:
    texts = [f"(and (= @type '{type}') (= n {n}))" for type in "ab" for n in range(20)]
    found = closure(*texts, **bounds)
    if isinstance(expected, int):
        assert (len(found.form), found.widened) == (expected, False)
    else:
        assert (shown(found), found.widened) == (expected, True)


def test_a_widened_closure_never_loses_an_interest() -> None:
    random = Random(5)
    seen = set()
    for _ in range(150):
        nodes = [filter_of(random) for _ in range(random.randrange(2, 9))]
        bounds = Bounds(alternatives_max=random.randrange(1, 4))
        found = closure_of(map(normal, nodes), bounds)
        seen.add((found.widened, found == EVERYTHING))
        for event in random.sample(EVENTS, 30):
            if any(holds(node, event, kin) for node in nodes):
                assert found.matches(event, kin), (nodes, event)
    assert len(seen) == 3


@pytest.mark.parametrize("mistake", ["covers", "keys", "values"])
def test_a_mistake_is_seen(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    if mistake == "covers":
        monkeypatch.setattr(Known, "covers", lambda self, other: other.tests <= self.facts)
        with pytest.raises(AssertionError):
            test_a_closure_matches_an_event_iff_one_of_its_filters_does()
    elif mistake == "keys":
        monkeypatch.setattr(union, "_keys_of", lambda known: {union._key_of(known)})
        with pytest.raises(AssertionError):
            test_what_another_one_covers_is_left_out_in_whatever_order_it_comes()
    else:
        monkeypatch.setattr(union, "_without_values", lambda parts: parts | {tree("(exists y)")})
        with pytest.raises(AssertionError):
            test_a_widened_closure_never_loses_an_interest()


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
def test_a_shape_is_wanted_surely_perhaps_or_surely_not(
    shape: dict[str, Any], expected: str
) -> None:
    assert wanted(FILTERS, parse_shape(shape), kin) == expected


def test_of_a_closure_that_was_widened_nothing_is_surely_wanted() -> None:
    shape = parse_shape({"type": "a"})
    assert wanted(EVERYTHING, shape) == "maybe"
    assert wanted(Closure(EVERYTHING.form), shape) == "yes"
    assert wanted(Closure(), shape) == "no"


def test_what_is_said_of_a_shape_holds_for_every_event_of_it() -> None:
    random = Random(11)
    answers = []
    for _ in range(400):
        found = closure_of([normal(filter_of(random)) for _ in range(2)])
        event = random.choice(EVENTS)
        shape, fits = _part_of(random, event)
        answer = wanted(found, shape, kin)
        answers.append(answer)
        for other in [event, *fits]:
            if answer != "maybe":
                assert found.matches(other, kin) == (answer == "yes"), (found, shape, other)
    assert min(answers.count(answer) for answer in ("yes", "no", "maybe")) > 20


def _part_of(random: Random, event: Event) -> tuple[Shape, list[Event]]:
    """Something that is known of an event, and others of which it is true too."""
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


def _holds_all(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(
        name in found and type(found[name]) is type(value) and found[name] == value
        for name, value in wanted.items()
    )
