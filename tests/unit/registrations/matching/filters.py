"""Programs for filters of several alternatives: whole trees are added and removed; the naive
evaluation of the tree, without a normal form, is the reference.
"""

from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.filters.ast import And, Compare, Const, Node, Not, Or, Path, Truth
from registrations.filters.evaluate import holds
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import specs_of
from registrations.matching.strategies import MatcherFactory
from tests.unit.registrations.matching.conditions import (
    hierarchy,
    outside,
    outsides,
    positive,
    seeded_test,
    witnesses,
)
from tests.unit.registrations.matching.vocabulary import (
    APPLICATIONS,
    DOMAINS,
    FREQUENT,
    NESTS,
    PATHS,
    TYPES,
    nests,
    put,
    skewed,
    texts,
    values,
)

IDS = 12


class Take(NamedTuple):
    """A filter is added, or replaces another one."""

    id: int
    node: Node


class Drop(NamedTuple):
    id: int


Step = Take | Drop | Event


class Wrong(NamedTuple):
    """The first event for which a matcher disagrees with the trees."""

    event: Event
    found: list[int]
    expected: list[int]


class Met(NamedTuple):
    """The pairs of an event and a filter, and how many of them matched."""

    pairs: int
    matched: int


def differs(
    steps: Iterable[Step], make: MatcherFactory, filtering: type[FilterMatcher] = FilterMatcher
) -> Wrong | Met:
    """Run a strategy under a FilterMatcher until it disagrees with the trees."""
    matcher, nodes = filtering(make(hierarchy)), dict[int, Node]()
    pairs = matched = 0
    for step in steps:
        if isinstance(step, Take):
            nodes[step.id] = step.node
            matcher.add(step.id, specs_of(step.node))
        elif isinstance(step, Drop):
            nodes.pop(step.id, None)
            matcher.remove(step.id)
        else:
            found = sorted(matcher.match(step))
            expected = sorted(id for id, node in nodes.items() if holds(node, step, hierarchy))
            if found != expected:
                return Wrong(step, found, expected)
            pairs, matched = pairs + len(nodes), matched + len(expected)
        if len(matcher) != len(nodes):
            return Wrong(Event("", "", {}), [len(matcher)], [len(nodes)])
    return Met(pairs, matched)


def leaves(node: Node) -> Iterator[Node]:
    match node:
        case And(items) | Or(items):
            for item in items:
                yield from leaves(item)
        case Not(item):
            yield from leaves(item)
        case _:
            yield node


# --- the seeded source ---


def seeded(seed: int, length: int) -> Iterator[Step]:
    """Yield filters to add, remove and replace, and events that pass the leaves of one."""
    random, live = Random(seed), dict[int, Node]()
    for _ in range(length):
        dice = random.random()
        if dice < 0.25 or not live:
            id = random.randrange(IDS)
            live[id] = random.choice([*live.values()]) if live and dice < 0.05 else _tree(random, 3)
            yield Take(id, live[id])
        elif dice < 0.35:
            id = random.randrange(IDS)
            live.pop(id, None)
            yield Drop(id)
        else:
            yield _event(random, random.choice([*live.values()]))


def _tree(random: Random, depth: int) -> Node:
    dice = random.random()
    if depth and dice < 0.5:
        made = And if dice < 0.2 else Or
        return made(tuple(_tree(random, depth - 1) for _ in range(random.randrange(1, 4))))
    if depth and dice < 0.6:
        return Not(_tree(random, depth - 1))
    if dice < 0.62:
        return Truth(dice < 0.61)
    if dice < 0.8:
        return Compare("=", Path(skewed(random, PATHS)), Const(skewed(random, FREQUENT)))
    if dice < 0.85:
        return Compare("=", Path("type", "envelope"), Const(skewed(random, TYPES)))
    return seeded_test(random)


def _event(random: Random, like: Node) -> Event:
    attributes = {skewed(random, PATHS): skewed(random, FREQUENT) for _ in range(3)}
    for leaf in leaves(like):
        for path, value in witnesses(leaf):
            if random.random() < 0.8:
                put(attributes, path, value, nest=random.choice(NESTS))
    gate = skewed(random, DOMAINS), skewed(random, TYPES)
    several = tuple(skewed(random, APPLICATIONS) for _ in range(random.randrange(3)))
    return Event(*gate, attributes, application=several, **outside(random))


# --- hypothesis ---

trees: st.SearchStrategy[Node] = st.recursive(
    st.one_of(positive, positive, st.booleans().map(Truth)),
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)


@st.composite
def events_like(draw: st.DrawFn, registered: list[Node]) -> Event:
    """Draw an event that passes most leaves of one of the trees."""
    attributes = draw(st.dictionaries(texts, values, max_size=3))
    for leaf in leaves(draw(st.sampled_from(registered))):
        for path, value in witnesses(leaf):
            put(attributes, path, value, nest=draw(nests))
    gate = draw(st.sampled_from(DOMAINS)), draw(st.sampled_from(TYPES))
    several = draw(st.lists(st.sampled_from(APPLICATIONS), max_size=2).map(tuple))
    return Event(*gate, attributes, application=several, **draw(outsides))


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Draw filters and events; then removals, replacements and events."""
    registered = draw(st.lists(trees, min_size=1, max_size=4))
    steps: list[Step] = [Take(id, node) for id, node in enumerate(registered)]
    steps += draw(st.lists(events_like(registered), min_size=1, max_size=4))
    change = st.one_of(
        st.builds(Drop, st.integers(0, len(registered))),
        st.builds(Take, st.integers(0, 4), st.sampled_from(registered)),
        events_like(registered),
    )
    return [*steps, *draw(st.lists(change, max_size=6))]
