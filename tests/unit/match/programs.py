"""Programs for matchers: registrations come and go, events are matched. Two sources, a seeded one
and hypothesis, from one vocabulary full of traps; and the comparison of two matchers.
"""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.match.matcher import Matcher
from registrations.match.spec import Spec

DOMAINS = ("a", "a:b", "", "ä")
TYPES = ("c", "b:c", "c.d", "=")
APPLICATIONS = ("a", "c", "a:b", "")
PATHS = (
    *("x", "y", "z", "x=1", "x:y", "", ".", "a.", ".a", "\0", "x\0y", "名", "é", "e\u0301"),
    *("a", "a.b", "a.b.c", "a.c", "b.c", "x.y"),
)
# what a careless comparison takes for the same
ALIKE: tuple[tuple[Any, ...], ...] = (
    (1, 1.0, True, "1", "1.0", "true", "True", "(True,)"),
    (0, 0.0, -0.0, False, None, "0", "", "null"),
    (2**53, float(2**53), 2**53 + 1),
    (2**63 - 1, 2**63, float(2**63), -(2**63)),
    (10**30, 1e30, 10**30 + 1),
    ("é", "e\u0301", "e"),
    ("x", "X", "x ", "\0", "x\0", ":", "1=1", "a.b", "名"),
    (2, -1, 0.5, 1e308),
)
SCALARS: tuple[Any, ...] = tuple(value for group in ALIKE for value in group)
FREQUENT: tuple[Any, ...] = (1, 1.0, True, False, None, "1", 0, "", "x", 2, 2**53, 2**53 + 1)
COMPOUND: tuple[Any, ...] = ([], {}, [1], ["x"], [True], {"b": 1}, {"b": {"c": 1}}, {"b.c": 1})
IDS = 1_000
T = TypeVar("T")


class Add(NamedTuple):
    id: int
    spec: Spec


class Remove(NamedTuple):
    id: int


Step = Add | Remove | Event


class Difference(NamedTuple):
    """The first event for which two matchers disagree."""

    event: Event
    found: list[int]
    expected: list[int]


class Share(NamedTuple):
    """How many events of a run there were, and how many matched something with pairs."""

    events: int
    matched: int


def differs(
    steps: Iterable[Step], make: Callable[[], Matcher], oracle: Callable[[], Matcher]
) -> Difference | None:
    """Run both side by side, ids checked as a set without repetition, until they disagree."""
    one, other = make(), oracle()
    for step in steps:
        if isinstance(step, Event):
            found, expected = sorted(one.match(step)), sorted(other.match(step))
            if found != expected:
                return Difference(step, found, expected)
        else:
            apply(one, step)
            apply(other, step)
        if len(one) != len(other):
            return Difference(Event("", "", {}), [len(one)], [len(other)])
    return None


def apply(matcher: Matcher, step: Add | Remove) -> None:
    if isinstance(step, Add):
        matcher.add(step.id, step.spec)
    else:
        matcher.remove(step.id)


def share(steps: Iterable[Step], make: Callable[[], Matcher]) -> Share:
    """Of the events, those that match at least one registration with a pair."""
    matcher, specs, events, matched = make(), dict[int, Spec](), 0, 0
    for step in steps:
        if isinstance(step, Event):
            events += 1
            matched += any(specs[id].pairs for id in matcher.match(step))
            continue
        apply(matcher, step)
        if isinstance(step, Add):
            specs[step.id] = step.spec
    return Share(events, matched)


# --- the seeded source ---


def seeded(seed: int, length: int) -> Iterator[Step]:
    """Adds, removals (also of what is not there) and events, more than half of which are made to
    hold what some registration asks for.
    """
    random = Random(seed)
    live: dict[int, Spec] = {}
    for _ in range(length):
        dice = random.random()
        if dice < 0.4:
            id = random.randrange(IDS)
            spec = random.choice([*live.values()]) if live and dice < 0.1 else _spec(random)
            live[id] = spec
            yield Add(id, spec)
        elif dice < 0.5:
            id = random.choice([*live, IDS + 1])
            live.pop(id, None)
            yield Remove(id)
        else:
            like = random.choice([*live.values()]) if live and random.random() < 0.7 else Spec()
            yield _event(random, like)


def _spec(random: Random) -> Spec:
    pairs = [(_skewed(random, PATHS), _skewed(random, FREQUENT)) for _ in range(_few(random))]
    if random.random() < 0.3:
        pairs.append((random.choice(PATHS), random.choice(SCALARS)))
    if pairs and random.random() < 0.1:
        pairs.append(random.choice(pairs))
    application = _skewed(random, APPLICATIONS) if random.random() < 0.25 else None
    return Spec(_or_any(random, DOMAINS), _or_any(random, TYPES), tuple(pairs), application)


def _event(random: Random, like: Spec) -> Event:
    others = [
        (_skewed(random, PATHS), random.choice((*FREQUENT, random.choice(COMPOUND))))
        for _ in range(random.randrange(6))
    ]
    order = [*like.pairs, *others] if random.random() < 0.3 else [*others, *like.pairs]
    attributes: dict[str, Any] = {}
    for path, value in order:
        given = random.choice(alike(value)) if random.random() < 0.1 else value
        put(attributes, path, given, nest=random.random() < 0.5)
    domain = _skewed(random, DOMAINS) if like.domain is None else like.domain
    type = _skewed(random, TYPES) if like.type is None else like.type
    if random.random() < 0.1:
        domain, type = type, domain
    several = [_skewed(random, APPLICATIONS) for _ in range(random.randrange(3))]
    if like.application is not None and random.random() < 0.9:
        several.append(like.application)
    return Event(domain, type, attributes, application=tuple(several))


def alike(value: Any) -> tuple[Any, ...]:
    """The group of a value, which it is in by its type as well."""
    groups = (group for group in ALIKE if any(value is member for member in group))
    return next(groups, (value,))


def put(attributes: dict[str, Any], path: str, value: Any, *, nest: bool) -> None:
    """Set a path, nested if wanted; objects in the way are kept, other values replaced."""
    if not nest:
        attributes[path] = value
        return
    *outer, last = path.split(".")
    inside = attributes
    for step in outer:
        if not isinstance(inside.get(step), dict):
            inside[step] = {}
        inside[step] = dict(inside[step])
        inside = inside[step]
    inside[last] = value


def _few(random: Random) -> int:
    return random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 6))


def _skewed(random: Random, choices: tuple[T, ...]) -> T:
    return choices[int(len(choices) * random.random() ** 2)]


def _or_any(random: Random, choices: tuple[str, ...]) -> str | None:
    return None if random.random() < 0.25 else _skewed(random, choices)


# --- hypothesis ---

_texts = st.one_of(st.sampled_from(PATHS), st.text("ab.:=\0é", max_size=4))
_scalars = st.one_of(
    st.sampled_from(SCALARS),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
)
_values = st.recursive(
    st.one_of(_scalars, st.sampled_from(COMPOUND)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(_texts, inner, max_size=3)
    ),
    max_leaves=5,
)
specs = st.builds(
    Spec,
    st.one_of(st.none(), st.sampled_from(DOMAINS)),
    st.one_of(st.none(), st.sampled_from(TYPES)),
    st.lists(st.tuples(_texts, _scalars), max_size=4).map(tuple),
    st.one_of(st.none(), st.sampled_from(APPLICATIONS)),
)


@st.composite
def events_like(draw: st.DrawFn, wanted: list[Spec]) -> Event:
    """An event that was made to hold the pairs of one of the specs, if nothing came in between."""
    like = draw(st.sampled_from(wanted)) if wanted else Spec()
    attributes = draw(st.dictionaries(_texts, _values, max_size=4))
    for path, value in like.pairs:
        put(attributes, path, value, nest=draw(st.booleans()))
    domain = draw(st.sampled_from(DOMAINS)) if like.domain is None else like.domain
    type = draw(st.sampled_from(TYPES)) if like.type is None else like.type
    several = draw(st.lists(st.sampled_from(APPLICATIONS), max_size=2))
    if like.application is not None:
        several.append(like.application)
    return Event(domain, type, attributes, application=tuple(several))


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """Some registrations, some events; some leave, some are replaced, and events again."""
    wanted = draw(st.lists(specs, min_size=1, max_size=8))
    steps: list[Step] = [Add(id, spec) for id, spec in enumerate(wanted)]
    steps += draw(st.lists(events_like(wanted), max_size=4))
    change = st.one_of(
        st.builds(Remove, st.integers(0, len(wanted))),
        st.builds(Add, st.integers(0, 12), st.sampled_from(wanted)),
        events_like(wanted),
    )
    return [*steps, *draw(st.lists(change, max_size=8))]
