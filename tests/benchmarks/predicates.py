"""Filters and events for the matchers: predicate forms over 64 fields, always the same for a seed.
Plain.

Half of the fields are numbers below 100, half are texts of three letters from eight; an event has
30 of them. A filter is `and` of two or three comparisons, one in ten `or` of two such; one
comparison in twenty is negated.
"""

from random import Random
from typing import Any

FIELDS = 64
EVENT_FIELDS = 30
LETTERS = "abcdefgh"
SEED = 20_261_122
RANGE = 1_000
DOMAIN, TYPE = "bench", "reading"


def filters(count: int) -> list[str]:
    """Return so many filters in predicate form; the first are the same for any number."""
    random = Random(SEED)
    return [_filter(random) for _ in range(count)]


def events(count: int) -> list[dict[str, Any]]:
    random = Random(SEED + 1)
    return [{"domain": DOMAIN, "type": TYPE, "attributes": _fields(random)} for _ in range(count)]


def ranges(count: int) -> list[str]:
    """Return narrow ranges of one number, in predicate form; an event is in about one of them."""
    random = Random(SEED)
    width = RANGE / count
    firsts = (random.uniform(0, RANGE - width) for _ in range(count))
    return [f"(and (>= x {first}) (< x {first + width}))" for first in firsts]


def measured(count: int) -> list[dict[str, Any]]:
    """Return events with that number."""
    random = Random(SEED + 1)
    of = ({"x": random.uniform(0, RANGE), "node": "n1"} for _ in range(count))
    return [{"domain": DOMAIN, "type": TYPE, "attributes": attributes} for attributes in of]


def _filter(random: Random) -> str:
    if random.random() < 0.1:
        return f"(or {_all(random)} {_all(random)})"
    return _all(random)


def _all(random: Random) -> str:
    terms = " ".join(_term(random) for _ in range(random.choice((2, 2, 3))))
    return f"(and {terms})"


def _term(random: Random) -> str:
    field = random.randrange(FIELDS)
    made = _of_number(random, field) if field % 2 else _of_text(random, field)
    return f"(not {made})" if random.random() < 0.05 else made


def _of_number(random: Random, field: int) -> str:
    dice = random.random()
    if dice < 0.3:
        return f"(= f{field} {random.randrange(100)})"
    if dice < 0.9:
        return f"({random.choice(('<', '<=', '>', '>='))} f{field} {random.randrange(100)})"
    return f"(exists f{field})"


def _of_text(random: Random, field: int) -> str:
    dice = random.random()
    if dice < 0.5:
        return f'(= f{field} "{_letters(random, 3)}")'
    if dice < 0.9:
        return f'(prefix f{field} "{_letters(random, random.choice((1, 2)))}")'
    return f"(exists f{field})"


def _letters(random: Random, count: int) -> str:
    return "".join(random.choice(LETTERS) for _ in range(count))


def _fields(random: Random) -> dict[str, Any]:
    return {
        f"f{field}": random.randrange(100) if field % 2 else _letters(random, 3)
        for field in sorted(random.sample(range(FIELDS), EVENT_FIELDS))
    }
