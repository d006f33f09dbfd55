"""Registrations with lower and upper bounds, events, and what they find."""

from random import Random

from eventhub.event.envelope import Event
from registrations.filters.ast import Compare, Const, Node, Path
from registrations.filters.evaluate import holds
from registrations.matching.spec import Spec

NUMBERS = (0, 1, 1.0, 2, 2.5, 3, 7, -1, 10**18, 10**18 + 1, 2**53, 2**53 + 1, 1e300)
TEXTS = ("", "a", "ab", "b", "é", "z")
LOWER, UPPER = (">", ">="), ("<", "<=")


def bounds(random: Random, path: str) -> tuple[Node, ...]:
    """Return bounds of one path, in any order, also of ranges that only lists are in."""
    values = random.choice((NUMBERS, NUMBERS, TEXTS))
    several = [random.choice(LOWER), random.choice(UPPER)]
    several += random.choice(((), (), (">",), ("<=",)))
    return tuple(
        Compare(op, Path(path), Const(random.choice(values)))  # type: ignore[arg-type]
        for op in several
    )


def specs_of(seed: int, count: int) -> dict[int, Spec]:
    """Return intervals of two paths, in several gates, some with a pair."""
    random, made = Random(seed), dict[int, Spec]()
    for id in range(count):
        tests = bounds(random, random.choice("xy"))
        if random.random() < 0.3:
            tests += bounds(random, random.choice("xyz"))
        pairs = (("k", random.randrange(3)),) if random.random() < 0.3 else ()
        gate = random.choice(((None, None), ("d", None), ("d", "t"), ("e", None)))
        made[id] = Spec(*gate, pairs=pairs, tests=tests)
    return made


def events_of(seed: int, count: int) -> list[Event]:
    random = Random(seed)

    def value() -> object:
        values = random.choice((NUMBERS, TEXTS, (5, 2.4, "7", True, None)))
        one = random.choice(values)
        return random.choice((one, one, [one, random.choice(NUMBERS)]))

    return [
        Event(random.choice("de"), random.choice("tu"), {path: value() for path in "kxyz"})
        for _ in range(count)
    ]


def expected_of(specs: dict[int, Spec], event: Event) -> list[int]:
    found = []
    for id, spec in specs.items():
        pairs = [Compare("=", Path(path), Const(value)) for path, value in spec.pairs]
        passes = spec.domain in (None, event.domain) and spec.type in (None, event.type)
        if passes and all(holds(test, event) for test in (*pairs, *spec.tests)):
            found.append(id)
    return found
