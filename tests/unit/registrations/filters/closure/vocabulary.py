"""Filters over two attributes and the envelope, with values so few that chance makes many of them
cover each other; and every event that could tell two of them apart.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from random import Random
from typing import Any

from eventhub.event.envelope import Event
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Or,
    Path,
    Text,
    Within,
)
from registrations.filters.closure.union import Closure, ClosureBounds, InterestCollector
from registrations.filters.normal import NormalForm

PATHS = (Path("x"), Path("y"), Path("type", "envelope"), Path("priority", "envelope"))
CONSTANTS: tuple[Any, ...] = (1, 1.0, 2, 3, "1", "2", "10", "a", "ab", "b", True, None, "")
TYPES = ("a", "ab", "a.b", "b")
PARENTS = {"ab": ("b",), "b": ("a.b",)}
_MISSING = object()
VALUES: tuple[Any, ...] = (
    *(_MISSING, 0, 1, 2, 2.5, 4, "1", "2", "3", "10", "a", "ab", "abb", "b", "", True, None),
    *([], [1, 3], ["a", "b"], [2, "10"], ["", "ab"], {"x": 1}),
    *({"n": 2}, [{"n": 1}, {"n": "ab", "m": 3}], [{"n": 3, "m": 1}, {"m": 3}, 2]),
)


def hierarchy(event: Event) -> tuple[str, ...]:
    """Return the type and the declared ones above it."""
    return (event.type, *PARENTS.get(event.type, ()))


def filter_of(random: Random, depth: int = 2) -> Node:
    """Return any filter."""
    dice = random.random()
    if depth and dice < 0.45:
        made = And if dice < 0.3 else Or
        return made(tuple(filter_of(random, depth - 1) for _ in range(random.randrange(1, 4))))
    if dice < 0.6:
        return Not(test_of(random))
    return test_of(random)


def alike(random: Random) -> tuple[Node, Node]:
    """Return two tests of one kind, of the same field."""
    path, dice = random.choice(PATHS), random.random()
    return test_of(random, path, dice), test_of(random, path, dice)


def test_of(random: Random, path: Path | None = None, dice: float | None = None) -> Node:
    path = path or random.choice(PATHS)
    dice = random.random() if dice is None else dice
    const = Const(random.choice(CONSTANTS))
    if dice < 0.55:
        return Compare(random.choice(("=", "!=", "<", "<=", ">", ">=")), path, const)
    if dice < 0.6:
        return Compare(random.choice(("<", ">=", "!=")), const, path)
    if dice < 0.65:
        side = Arithmetic("+", path, Const(1))
        return Compare(random.choice(("<", ">")), side, Const(random.choice((1, 2, 3))))
    if dice < 0.72:
        return In(path, tuple(Const(random.choice(CONSTANTS)) for _ in range(2)))
    if dice < 0.84:
        text = random.choice(("a", "b", "ab", "", "1"))
        return Text(random.choice(("prefix", "suffix", "substring")), path, text)
    if dice < 0.88:
        return Text("wildcard", path, random.choice(("a*", "*b", "*a*", "a*b", "ab", "*")))
    if dice < 0.9:
        return Exists(path)
    if dice < 0.94:
        return _in_objects(random, const)
    domain = random.choice((None, None, "d", ""))
    return OfType(domain, random.choice((None, *TYPES)), random.random() < 0.4)


def _in_objects(random: Random, const: Const) -> Node:
    """Return a test of the object at `x`, or of one of the objects of a list at `x`."""
    inner = And((Compare("=", Path("n"), const), Compare(">", Path("m"), Const(2))))
    whole = Compare(random.choice(("=", ">", "!=")), Path("x.n"), const)
    return random.choice((whole, Exists(Path("x.n")), Within(Path("x"), inner)))


def events() -> Iterator[Event]:
    """Yield all events: about 1,900."""
    for x, y, type in product(VALUES, VALUES[::3], TYPES):
        attributes = {n: v for n, v in (("x", x), ("y", y)) if v is not _MISSING}
        yield Event("d", type, attributes, priority=len(attributes) + 1)
        yield Event("", type, dict(reversed(attributes.items())), priority=0)


def closure_of(forms: Iterable[NormalForm], bounds: ClosureBounds | None = None) -> Closure:
    """Return the union of filters in normal form."""
    union = InterestCollector(bounds or ClosureBounds())
    for form in forms:
        union.add(form)
    return union.closure()
