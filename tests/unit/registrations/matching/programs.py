"""Programs for matchers: registrations are added and removed, events are matched. Two sources, a
seeded one and hypothesis, share a vocabulary full of traps; `differs` compares matchers.
"""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.matching.matcher import Matcher
from registrations.matching.spec import Spec
from registrations.matching.strategies import MatcherFactory
from tests.unit.registrations.matching.conditions import (
    hierarchy,
    in_order,
    outside,
    outsides,
    seeded_test,
    tests,
    witnesses,
)
from tests.unit.registrations.matching.vocabulary import (
    APPLICATIONS,
    COMPOUND,
    DOMAINS,
    FEW_PATHS,
    FREQUENT,
    NESTS,
    PATHS,
    SCALARS,
    TYPES,
    alike,
    nests,
    put,
    scalars,
    skewed,
    texts,
    values,
)

IDS = 200
FEW = 5  # of registrations: then also paths and tests come and go


class Add(NamedTuple):
    id: int
    spec: Spec


class Remove(NamedTuple):
    id: int


Step = Add | Remove | Event


class Difference(NamedTuple):
    """The first event for which a matcher disagrees with the oracle."""

    matcher: str
    event: Event
    found: list[int]
    expected: list[int]


class Share(NamedTuple):
    """The events of a run, and those that matched a registration with pairs or tests."""

    events: int
    matched: int


def differs(
    steps: Iterable[Step], oracle: MatcherFactory, **makes: MatcherFactory
) -> Difference | None:
    """Run all side by side, ids compared as sets without repetition, until one disagrees."""
    matchers, other = {name: make(hierarchy) for name, make in makes.items()}, oracle(hierarchy)
    no_event = Event("", "", {})
    for step in steps:
        if isinstance(step, Event):
            expected = sorted(other.match(step))
        else:
            apply(other, step)
        for name, matcher in matchers.items():
            if isinstance(step, Event):
                if (found := sorted(matcher.match(step))) != expected:
                    return Difference(name, step, found, expected)
            else:
                apply(matcher, step)
            if len(matcher) != len(other):
                return Difference(name, no_event, [len(matcher)], [len(other)])
    return None


def caught(make: MatcherFactory, oracle: MatcherFactory, length: int) -> bool:
    """Return whether one of a few programs finds a difference from the oracle."""
    kinds = ((PATHS, IDS), (FEW_PATHS, IDS), (PATHS, FEW))
    runs = (seeded(seed, length, *kind) for seed in (1, 2) for kind in kinds)
    return any(differs(steps, oracle, wrong=make) is not None for steps in runs)


def apply(matcher: Matcher, step: Add | Remove) -> None:
    if isinstance(step, Add):
        matcher.add(step.id, step.spec)
    else:
        matcher.remove(step.id)


def share(steps: Iterable[Step], make: MatcherFactory) -> Share:
    """Count the events, and those that match at least one registration with a pair or test."""
    matcher, specs, events, matched = make(hierarchy), dict[int, Spec](), 0, 0
    for step in steps:
        if isinstance(step, Event):
            events += 1
            matched += any(specs[id].pairs or specs[id].tests for id in matcher.match(step))
            continue
        apply(matcher, step)
        if isinstance(step, Add):
            specs[step.id] = step.spec
    return Share(events, matched)


# --- the seeded source ---


def seeded(
    seed: int, length: int, names: tuple[str, ...] = PATHS, ids: int = IDS
) -> Iterator[Step]:
    """Yield adds, removals (also of unknown numbers) and events. More than half of the events
    match some registration; one of these comes before and after each removal.
    """
    random = Random(seed)
    live: dict[int, Spec] = {}
    for _ in range(length):
        dice = random.random()
        if dice < 0.4:
            id = random.randrange(ids)
            spec = random.choice([*live.values()]) if live and dice < 0.1 else _spec(random, names)
            live[id] = spec
            yield Add(id, spec)
        elif dice < 0.5:
            id = random.choice([*live, ids + 1])
            event = _event(random, live.pop(id, Spec()), names)
            yield from (event, Remove(id), event)
        else:
            like = random.choice([*live.values()]) if live and random.random() < 0.8 else Spec()
            yield _event(random, like, names)


def _spec(random: Random, names: tuple[str, ...]) -> Spec:
    pairs = [(skewed(random, names), skewed(random, FREQUENT)) for _ in range(_few(random))]
    if random.random() < 0.3:
        pairs.append((random.choice(names), random.choice(SCALARS)))
    if pairs and random.random() < 0.1:
        pairs.append(random.choice(pairs))
    application = skewed(random, APPLICATIONS) if random.random() < 0.25 else None
    chosen = [seeded_test(random, names) for _ in range(random.choice((0, 0, 0, 1, 1, 2, 2)))]
    gate = _or_any(random, DOMAINS), _or_any(random, TYPES)
    return Spec(*gate, tuple(pairs), application, in_order(chosen))


def _event(random: Random, like: Spec, names: tuple[str, ...]) -> Event:
    others = [
        (skewed(random, names), random.choice((*FREQUENT, random.choice(COMPOUND))))
        for _ in range(random.randrange(6))
    ]
    attributes_of_tests = [pair for test in like.tests for pair in witnesses(test)]
    others += attributes_of_tests if random.random() < 0.9 else []
    order = [*like.pairs, *others] if random.random() < 0.3 else [*others, *like.pairs]
    attributes: dict[str, Any] = {}
    for path, value in order:
        given = random.choice(alike(value)) if random.random() < 0.1 else value
        put(attributes, path, given, nest=random.choice(NESTS))
    domain = skewed(random, DOMAINS) if like.domain is None else like.domain
    type = skewed(random, TYPES) if like.type is None else like.type
    if random.random() < 0.1:
        domain, type = type, domain
    several = [skewed(random, APPLICATIONS) for _ in range(random.randrange(3))]
    if like.application is not None and random.random() < 0.9:
        several.append(like.application)
    return Event(domain, type, attributes, application=tuple(several), **outside(random))


def _few(random: Random) -> int:
    return random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 6))


def _or_any(random: Random, choices: tuple[str, ...]) -> str | None:
    return None if random.random() < 0.25 else skewed(random, choices)


# --- hypothesis ---

specs = st.builds(
    Spec,
    st.one_of(st.none(), st.sampled_from(DOMAINS)),
    st.one_of(st.none(), st.sampled_from(TYPES)),
    st.lists(st.tuples(texts, scalars), max_size=4).map(tuple),
    st.one_of(st.none(), st.sampled_from(APPLICATIONS)),
    st.lists(tests, max_size=2).map(in_order),
)


@st.composite
def events_like(draw: st.DrawFn, registered: list[Spec]) -> Event:
    """Draw an event with the pairs of one of the specs, unless something overwrites them."""
    like = draw(st.sampled_from(registered)) if registered else Spec()
    attributes = draw(st.dictionaries(texts, values, max_size=4))
    for path, value in (*(pair for test in like.tests for pair in witnesses(test)), *like.pairs):
        put(attributes, path, value, nest=draw(nests))
    domain = draw(st.sampled_from(DOMAINS)) if like.domain is None else like.domain
    type = draw(st.sampled_from(TYPES)) if like.type is None else like.type
    several = draw(st.lists(st.sampled_from(APPLICATIONS), max_size=2))
    if like.application is not None:
        several.append(like.application)
    return Event(domain, type, attributes, application=tuple(several), **draw(outsides))


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Draw registrations and events; then removals, replacements and events."""
    registered = draw(st.lists(specs, min_size=1, max_size=8))
    steps: list[Step] = [Add(id, spec) for id, spec in enumerate(registered)]
    steps += draw(st.lists(events_like(registered), max_size=4))
    change = st.one_of(
        st.builds(Remove, st.integers(0, len(registered))),
        st.builds(Add, st.integers(0, 12), st.sampled_from(registered)),
        events_like(registered),
    )
    return [*steps, *draw(st.lists(change, max_size=8))]
