"""Tests of texts, one for each registration, events that pass many of them, and what they find."""

from random import Random
from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.ast import Node, Not, Path, Text, TextTest
from registrations.filters.evaluate import holds
from registrations.matching.spec import Spec

OPS: tuple[TextTest, ...] = (
    *("prefix", "suffix", "substring", "wildcard", "wildcard", "wildcard"),
    *("equals-ignore-case", "prefix-ignore-case", "suffix-ignore-case", "cidr"),
)
ADDRESSES = (
    "10.0.0.1",
    "10.0.0.130",
    "10.1.0.1",
    "192.168.7.9",
    "2001:db8::7",
    "2001:db8:1::",
    "::1",
)
X = Path("x")


class Texts(NamedTuple):
    """Registrations, events, and the numbers that match each."""

    specs: dict[int, Spec]
    events: list[Event]
    expected: list[list[int]]


def word(random: Random, longest: int) -> str:
    return "".join(random.choices("aabBéÉ", k=random.randrange(longest)))


def seeded_text(random: Random, longest: int) -> Text:
    op = random.choice(OPS)
    if op == "wildcard":
        parts = (word(random, longest) for _ in range(random.randrange(1, 5)))
        return Text(op, X, "*".join(parts))
    if op == "cidr":
        return Text(op, X, f"{random.choice(ADDRESSES)}/{random.randrange(33)}")
    return Text(op, X, word(random, longest))


def texts_and_events(seed: int, longest: int) -> Texts:
    """Return texts of up to so many characters; some events have lists."""
    random = Random(seed)
    texts = [seeded_text(random, longest) for _ in range(150)]
    values = [one.text.replace("*", word(random, 5)) for one in texts]
    values += [word(random, 5) + one + word(random, 5) for one in values] + [
        "",
        "*",
        "a" * 3_000,
        *ADDRESSES,
    ]
    events: list[object] = [*values, *(random.sample(values, 6) for _ in range(40)), 1, None]
    tests: list[Node] = [Not(one) if random.random() < 0.1 else one for one in texts]
    specs = {id: Spec(tests=(test,)) for id, test in enumerate(tests)}
    asked = [Event("", "", {"x": value}) for value in events]
    expected = [[id for id, test in enumerate(tests) if holds(test, event)] for event in asked]
    return Texts(specs, asked, expected)
