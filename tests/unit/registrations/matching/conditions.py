"""Tests that are not pairs, for programs. Two sources, a seeded one and hypothesis; and
what an event must have so that a test holds, most of the time.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Const,
    Exists,
    Expression,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Path,
    Text,
    TextTest,
    Within,
)
from registrations.filters.printed import printed
from tests.unit.registrations.matching.vocabulary import (
    DOMAINS,
    FREQUENT,
    PATHS,
    SCALARS,
    TYPES,
    skewed,
    texts,
)

ORDERS: tuple[Comparison, ...] = ("<", "<=", ">", ">=")
COMPARISONS: tuple[Comparison, ...] = (*ORDERS, "!=", "=")
FOLDED: tuple[TextTest, ...] = ("equals-ignore-case", "prefix-ignore-case", "suffix-ignore-case")
TEXTS: tuple[TextTest, ...] = ("prefix", "suffix", "substring", "wildcard", "wildcard", *FOLDED)
PATTERNS = ("", "x", "1", "*", "x*", "*é", "a*b", "b*a", "a*b*a", "\\*", "*tr*e", "É", "ΑΣ")
THRESHOLDS: tuple[Any, ...] = (0, 1, 2, 0.5, -1, 2**53, 2**53 + 1, 10**18, "1", "x", "")
ENVELOPE = ("source", "key", "domain", "type", "application", "priority", "time", "id")
WORDS = ("", "s", "a", "c", "a:b", 0, 1, 7)  # of the envelope and the environment
OUTER = ("a", "a", "a.b", "b")  # objects, and what is in them
INNER = ("b", "c", "b.c")
EXPRESSIONS = tuple(
    Expression("cesql", text)
    for text in ("a < x", "LENGTH(x) > 1", "CONCAT(x, y) LIKE '_1%'", "y + 1 = x")
) + tuple(
    Expression("cel", text)
    for text in ("size(x) == 2 || size(x) > 2", "a + y > 2.5", "x in [y, '11']", "!(a == y)")
)
PARENTS = {"c.d": ("c",), "b:c": ("c", "="), "=": ()}


def hierarchy(event: Event) -> tuple[str, ...]:
    """Return the type and its supertypes."""
    return (event.type, *PARENTS.get(event.type, ()))


def in_order(tests: list[Node]) -> tuple[Node, ...]:
    """Sort tests as in a spec."""
    return tuple(sorted(dict.fromkeys(tests), key=printed))


# --- the seeded source ---


def seeded_test(random: Random, names: tuple[str, ...] = PATHS) -> Node:
    """Return a test, one in five negated."""
    made = _positive(random, names)
    return Not(made) if random.random() < 0.2 else made


def _positive(random: Random, names: tuple[str, ...]) -> Node:
    path, dice = Path(skewed(random, names)), random.random()
    number = Const(skewed(random, THRESHOLDS))
    if dice < 0.3:
        return Compare(random.choice(ORDERS), path, number)
    if dice < 0.4:
        return Compare(random.choice(COMPARISONS), number, path)
    if dice < 0.5:
        return Compare(random.choice(COMPARISONS), path, Path(skewed(random, names)))
    if dice < 0.55:
        made = Arithmetic(random.choice("+-*"), path, Const(random.choice((1, 2, 0.5))))  # type: ignore[arg-type]
        return Compare(random.choice(ORDERS), made, number)
    if dice < 0.65:
        return Text(random.choice(TEXTS), path, random.choice(PATTERNS))
    if dice < 0.74:
        return Exists(path)
    if dice < 0.8:
        inner = tuple(seeded_test(random, INNER) for _ in range(random.choice((1, 2, 2))))
        return Within(Path(random.choice(OUTER)), And(inner))
    if dice < 0.82:
        return random.choice(EXPRESSIONS)
    if dice < 0.87:
        return In(path, tuple(Const(skewed(random, FREQUENT)) for _ in range(3)))
    return _outside(random)


def _outside(random: Random) -> Node:
    """Return a test of the type, the envelope or the environment."""
    if random.random() < 0.5:
        domain = random.choice((None, None, None, *DOMAINS))
        return OfType(domain, random.choice((None, *TYPES)), random.random() < 0.3)
    path = Path("trace", "environment")
    if random.random() < 0.8:
        path = Path(random.choice(ENVELOPE), "envelope")
    if random.random() < 0.3:
        return Exists(path)
    return Compare(random.choice(("=", "=", ">=")), path, Const(random.choice(WORDS)))


def witnesses(test: Node) -> Iterator[tuple[str, Any]]:
    """Yield attributes with which a test usually holds."""
    match test:
        case Compare(op, Path(name, "attributes"), Const(value)):
            yield name, _beyond(op, value)
        case Compare(_, Path(name, "attributes"), Path(other, "attributes")):
            yield name, 1
            yield other, [2, 1]
        case Compare(_, Arithmetic(_, Path(name), _), _):
            yield name, 3
        case Text(op, Path(name, "attributes"), text):
            yield name, text.swapcase() if op in FOLDED else text.replace("*", "q")
        case Exists(Path(name, "attributes")):
            yield name, None
        case Expression():
            yield from (("a", 1), ("x", "11"), ("y", 10))
        case In(Path(name, "attributes"), values) if values:
            yield name, [{}, values[-1].value]
        case Within(Path(name), And(items)):
            for item in items:
                yield from ((f"{name}.{inner}", value) for inner, value in witnesses(item))


def _beyond(op: str, value: Any) -> Any:
    if isinstance(value, bool | None):
        return value
    if isinstance(value, str):
        return value + "1" if op.startswith(">") else ""
    return value + {"<": -1, ">": 1, "!=": 1}.get(op, 0)


def outside(random: Random) -> dict[str, Any]:
    """Return fields of an event that are not attributes."""
    if random.random() < 0.5:
        return {}
    return {
        "source": random.choice(("", "s", "a")),
        "key": random.choice(("", "a", "c")),
        "priority": random.choice((0, 1, 7)),
        "id": random.choice((None, "a")),
        "time_us": random.choice((0, 1_700_000_000_000_000)),
        "environment": random.choice((None, {}, {"trace": "s"}, {"trace": ""})),
    }


# --- hypothesis ---

_constants = st.sampled_from((*SCALARS, *THRESHOLDS)).map(Const)
paths = st.builds(Path, texts)
_others = st.one_of(
    st.builds(Path, st.sampled_from(ENVELOPE), st.just("envelope")),
    st.builds(Path, st.just("trace"), st.just("environment")),
)
_any_paths = st.one_of(paths, paths, paths, _others)
_operands: st.SearchStrategy[Operand] = st.one_of(
    _any_paths,
    _constants,
    st.builds(Arithmetic, st.sampled_from("+-*/"), _any_paths, st.builds(Const, st.just(2))),
)
_inner_paths = st.builds(Path, st.sampled_from(INNER))
_inside: st.SearchStrategy[Node] = st.one_of(
    st.builds(Compare, st.sampled_from(COMPARISONS), _inner_paths, _constants),
    st.builds(Compare, st.just("="), _inner_paths, st.sampled_from((0, 1, 2)).map(Const)),
    st.builds(Exists, _inner_paths),
    st.builds(Compare, st.just("="), _inner_paths, _constants).map(Not),
)
positive: st.SearchStrategy[Node] = st.one_of(
    st.builds(Compare, st.sampled_from(COMPARISONS), _any_paths, _operands),
    st.builds(Compare, st.sampled_from(COMPARISONS), _operands, _any_paths),
    st.builds(Compare, st.just("="), paths, _constants),
    st.builds(Compare, st.just(">"), paths, st.sampled_from((0, 1, 2, 3)).map(Const)),
    st.builds(In, _any_paths, st.lists(_constants, min_size=1, max_size=3).map(tuple)),
    st.builds(Text, st.sampled_from(TEXTS), _any_paths, st.sampled_from(PATTERNS)),
    st.builds(Exists, _any_paths),
    st.sampled_from(EXPRESSIONS),
    st.builds(
        lambda outer, inner: Within(Path(outer), And(tuple(inner))),
        st.sampled_from(OUTER),
        st.lists(_inside, min_size=1, max_size=2),
    ),
    st.builds(
        OfType, st.sampled_from((None, *DOMAINS)), st.sampled_from((None, *TYPES)), st.booleans()
    ),
)
tests = st.one_of(positive, positive, positive.map(Not))
outsides = st.integers(0, 1_000).map(lambda seed: outside(Random(seed)))
