"""Registrations and events for the matchers: pairs drawn by Zipf's law with exponent 1, always the
same for a seed. Plain.

500 names x 200 values are 100,000 pairs, of any popularity each; 8 pairs of domain and type. A
registration has 1 to 4 pairs, one in 2,000 none; an event has 5 to 15.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

from registrations.matching.spec import Spec

SEED = 20_261_121
NAMES = 500
VALUES = 200
GATES = 8
NO_PAIRS_SHARE = 0.0005
REGISTRATION_PAIRS = (1, 4)
EVENT_PAIRS = (5, 15)


class Interest(NamedTuple):
    """Registrations and events, as JSON objects."""

    specs: list[Spec]
    events: list[dict[str, Any]]


class Draws:
    """A source of types and pairs."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._pairs = zipf(NAMES * VALUES)
        self._gates = zipf(GATES)
        self._by_rank = list(range(NAMES * VALUES))
        Random(SEED).shuffle(self._by_rank)

    def gate(self) -> tuple[str, str]:
        rank = self._rank(self._gates)
        return f"domain{rank % 4}", f"type.{rank}"

    def attributes(self, count: int) -> dict[str, str]:
        """Return pairs with different names."""
        drawn: dict[str, str] = {}
        while len(drawn) < count:
            pair = self._by_rank[self._rank(self._pairs)]
            drawn.setdefault(f"name{pair % NAMES}", f"value{pair // NAMES}")
        return drawn

    def _rank(self, weights: list[float]) -> int:
        return bisect_left(weights, self.random.random() * weights[-1])


def zipf(count: int) -> list[float]:
    """Return cumulated weights of ranks 1, 2, 3, ... by Zipf's law."""
    return list(accumulate(1 / rank for rank in range(1, count + 1)))


def interest(registrations: int, events: int) -> Interest:
    """Return so many of both; the first registrations are the same for any number."""
    return Interest([*specs(registrations)], coming(events))


def specs(count: int) -> Iterator[Spec]:
    """Yield specs one after the other: ten million do not fit into memory."""
    draws = Draws(SEED + 1)
    return (_spec(draws) for _ in range(count))


def coming(count: int) -> list[dict[str, Any]]:
    draws = Draws(SEED + 2)
    return [_event(draws) for _ in range(count)]


def _spec(draws: Draws) -> Spec:
    none = draws.random.random() < NO_PAIRS_SHARE
    count = 0 if none else draws.random.randint(*REGISTRATION_PAIRS)
    return Spec(*draws.gate(), tuple(draws.attributes(count).items()))


def _event(draws: Draws) -> dict[str, Any]:
    domain, type = draws.gate()
    attributes = draws.attributes(draws.random.randint(*EVENT_PAIRS))
    return {"domain": domain, "type": type, "attributes": attributes}
