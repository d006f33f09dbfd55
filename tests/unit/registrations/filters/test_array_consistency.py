"""Fields of a pattern below one list of objects hold of one of these objects, as with event-ruler,
and paths of all languages lead into them.
"""

from collections.abc import Iterator
from itertools import product
from time import process_time
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registrations.filters.errors import FilterTooLarge
from registrations.filters.evaluate import holds
from registrations.filters.eventbridge import parse_eventbridge
from registrations.filters.explain import explain
from registrations.filters.languages import parse
from registrations.filters.normal import normal
from registrations.filters.predicate import parse_predicate
from tests.unit.registrations.filters.trees import event

ISSUE = {
    "action": "labeled",
    "labels": [
        {"name": "bug", "color": "red", "votes": 3, "by": [{"user": "ann"}, {"user": "bob"}]},
        {"name": "help", "color": "blue", "votes": 9, "by": [{"user": "eve"}]},
    ],
}


@pytest.mark.parametrize(
    ("language", "filter", "holding"),
    [
        ("pairs", {"attributes": {"labels.name": "bug"}}, True),
        ("pairs", {"attributes": {"labels.name": "gone"}}, False),
        ("pairs", {"attributes": {"labels.name": "bug", "labels.color": "blue"}}, True),
        ("pairs", {"attributes": {"labels.by.user": "eve"}}, True),
        ("propositional", "labels", True),
        ("predicate", "(> labels.votes 8)", True),
        ("predicate", "(!= labels.name 'bug)", False),  # one is equal
        ("predicate", "(exists labels.by.user)", True),
        ("predicate", "(prefix labels.color 're)", True),
        ("predicate", "(> (+ labels.votes 1) 9)", True),
        ("predicate", "(within labels (and (= name 'bug) (> votes 5)))", False),
        ("predicate", "(within labels (and (= name 'help) (> votes 5)))", True),
        ("predicate", "(within labels (and (not (= name 'bug)) (exists color)))", True),
        ("predicate", "(within labels (not (exists name)))", False),
        ("predicate", "(within labels (within by (= user 'bob)))", True),
        ("predicate", "(within gone (not (exists name)))", False),
        ("predicate", "(not (within labels (= name 'gone)))", True),
        ("ready", "t | $labels.name == 'bug' and $labels.votes > 8", True),
        ("ready", "t | 'bug' in $labels.name", True),
        ("ready", "t | 'el' ~ $labels.name", True),
        ("ready", "t | exist $labels.size", False),
        ("eventbridge", {"detail": {"labels": {"name": ["bug"]}}}, True),
        ("eventbridge", {"detail": {"labels": {"name": ["bug"], "color": ["red"]}}}, True),
        ("eventbridge", {"detail": {"labels": {"name": ["bug"], "color": ["blue"]}}}, False),
        ("eventbridge", {"detail": {"labels": {"name": ["bug"], "by": {"user": ["bob"]}}}}, True),
        ("eventbridge", {"detail": {"labels": {"name": ["bug"], "by": {"user": ["eve"]}}}}, False),
        ("eventbridge", {"detail": {"labels": {"name": [{"anything-but": "bug"}]}}}, True),
        ("eventbridge", {"detail": {"labels": {"votes": [{"numeric": [">", 3, "<", 9]}]}}}, False),
        ("eventbridge", {"detail": {"labels": {"size": [{"exists": False}]}}}, True),
        ("eventbridge", {"detail": {"gone": {"size": [{"exists": False}]}}}, True),
        ("eventbridge", {"detail": {"labels": {"name": [{"exists": False}]}}}, False),
        ("eventbridge",
         {"detail": {"labels": {"name": ["bug"]}, "$or": [{"labels": {"color": ["blue"]}},
                                                          {"action": ["closed"]}]}}, False),
        ("eventbridge",
         {"detail": {"labels": {"name": ["bug"]}, "$or": [{"labels": {"color": ["red"]}},
                                                          {"action": ["closed"]}]}}, True),
    ],
)  # fmt: skip
def test_every_language_reaches_into_lists_of_objects(
    language: str, filter: Any, holding: bool
) -> None:
    node = parse(language, filter).node
    assert holds(node, event(ISSUE)) is holding
    assert explain(node, event(ISSUE)).held is holding


@pytest.mark.parametrize(
    "attributes",
    [
        {"labels": {"name": "bug", "color": "red"}},
        {"labels.name": "bug", "labels.color": "red"},
        {"labels": {"name": "bug"}, "labels.color": "red"},
        {"labels": [{"name": "bug"}, {}], "labels.color": "red"},
    ],
)
def test_without_lists_a_pattern_is_a_conjunction_of_its_paths(attributes: dict[str, Any]) -> None:
    pattern = {"detail": {"labels": {"name": ["bug"], "color": ["red"]}}}
    assert holds(parse_eventbridge(pattern), event(attributes))


def test_an_explanation_names_the_tests_that_the_nearest_object_fails() -> None:
    node = parse_predicate("(within labels (and (= name 'bug) (= color 'red) (> votes 5)))")
    found = explain(node, event(ISSUE))
    assert found.op == "within"
    assert found.why == "in none of 2 objects at labels; in the nearest: votes is 3, expected > 5"
    assert explain(node, event({})).why == (
        "labels is missing, expected an object or a list of objects"
    )
    one = explain(node, event({"labels": {"name": "x", "color": "red", "votes": 9}}))
    assert one.why == 'in the object at labels: name is "x", expected = "bug"'


def test_a_test_of_one_object_implies_tests_of_the_event() -> None:
    pattern = {"detail": {"labels": {"name": ["bug"], "color": [{"anything-but": "red"}]}}}
    [parts] = normal(parse_eventbridge(pattern))
    assert parse_predicate("(= labels.name 'bug)") in parts
    assert parse_predicate("(exists labels.color)") in parts


FIELDS_450 = {f"f{number}": ["x"] for number in range(450)}


@pytest.mark.parametrize(
    "pattern",
    [
        {"a": {f"f{number}": ["x", {"exists": False}] for number in range(300)}},
        {"a": {**FIELDS_450, "$or": [{"b": [number]} for number in range(1_000)]}},
    ],
)
def test_a_pattern_whose_alternatives_multiply_is_refused_quickly(pattern: dict[str, Any]) -> None:
    """The siblings of 1,000 alternatives were copied to each of them: 20 KB took 15 s."""
    before = process_time()
    with pytest.raises(FilterTooLarge):
        parse_eventbridge({"detail": pattern})
    assert process_time() - before < 0.5


# --- event-ruler's rule, implemented independently: each leaf with its index in every list ---


class Leaf(NamedTuple):
    path: tuple[str, ...]
    value: Any
    indexes: dict[tuple[Any, ...], int]  # by list, which member


def leaves(value: Any, path: tuple[str, ...], here: tuple[Any, ...]) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name), (*here, name))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            for leaf in leaves(inner, path, (*here, at)):
                yield leaf._replace(indexes={**leaf.indexes, here: at})
    else:
        yield Leaf(path, value, {})


def rules(pattern: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[list[Any]]:
    """Yield each choice of `$or` alternatives, as paths and allowed values."""
    parts: list[list[list[Any]]] = []
    for name, inner in pattern.items():
        if name == "$or":
            parts.append([rule for one in inner for rule in rules(one, path)])
        elif isinstance(inner, dict):
            parts.append([*rules(inner, (*path, name))])
        else:
            parts.append([[((*path, name), inner)]])
    for chosen in product(*parts):
        yield [field for rule in chosen for field in rule]


def fits(allowed: Any, value: Any) -> bool:
    if isinstance(allowed, dict):
        return "anything-but" in allowed and value != allowed["anything-but"]
    return bool(allowed == value)


def ruler(pattern: dict[str, Any], attributes: dict[str, Any]) -> bool:
    there = [*leaves(attributes, (), ())]

    def match(rule: list[Any], indexes: dict[tuple[Any, ...], int]) -> bool:
        if not rule:
            return True
        (path, allowed), *rest = rule
        if {"exists": False} in allowed and all(leaf.path != path for leaf in there):
            return match(rest, indexes)
        return any(
            match(rest, {**indexes, **leaf.indexes})
            for leaf in there
            if leaf.path == path
            and any(fits(one, leaf.value) for one in allowed)
            and all(indexes.get(one, at) == at for one, at in leaf.indexes.items())
        )

    return any(match(rule, {}) for rule in rules(pattern))


values = st.integers(1, 2)
allowed = st.one_of(
    values.map(lambda value: [value]),
    st.lists(
        st.sampled_from((1, 2, {"anything-but": 1}, {"exists": False})), min_size=1, max_size=2
    ),
)


def objects(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Return an object, or a list of two or three; most have all fields."""
    one = st.one_of(st.fixed_dictionaries(fields), st.fixed_dictionaries({}, optional=fields))
    return st.one_of(one, st.lists(one, min_size=2, max_size=3))


def patterns(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Return patterns of some or all of the fields, with or without an `$or`."""
    some = st.fixed_dictionaries({}, optional=fields).filter(bool)
    one = st.one_of(st.fixed_dictionaries(fields), some)
    several = st.lists(some, min_size=2, max_size=2)
    return st.one_of(one, one, st.builds(lambda one, two: {**one, "$or": two}, one, several))


leaf_patterns = patterns({"v": allowed, "w": allowed})
inner_objects = objects({"v": values, "w": values})
events = st.fixed_dictionaries(
    {"a": objects({"b": inner_objects, "v": values, "w": values}), "v": values}
)


@settings(max_examples=250, deadline=None)
@given(
    patterns({"a": patterns({"b": leaf_patterns, "v": allowed, "w": allowed}), "v": allowed}),
    events,
)
def test_patterns_hold_as_with_event_ruler(
    pattern: dict[str, Any], attributes: dict[str, Any]
) -> None:
    try:
        node = parse_eventbridge({"detail": pattern})
        form = normal(node)
    except FilterTooLarge:
        return
    expected = ruler(pattern, attributes)
    assert holds(node, event(attributes)) is expected
    assert any(all(holds(one, event(attributes)) for one in parts) for parts in form) is expected
