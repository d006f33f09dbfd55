"""A comparison of the strategies on the same work: their results must be equal, and their speed is
measured (OIF-30). The best one depends on the mix of events and filters, so there are two mixes.
Plain module.
"""

from collections.abc import Callable, Sequence
from random import Random
from time import perf_counter
from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.ast import And, Compare, Const, Exists, Node, Not, Or, Path
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import Specs, specs_of
from registrations.matching.strategies import STRATEGIES, new_matcher

_KINDS = ("error", "warning", "info", "login", "logout")
_USERS = tuple(f"user{n}" for n in range(200))
_FIELDS = tuple(f"field{n}" for n in range(40))  # an event has a few of them
_BATCH = 8  # events between two readings of the clock


class Workload(NamedTuple):
    """Filters, and the events that are matched against them repeatedly."""

    filters: list[Specs]
    events: list[Event]


class StrategyTiming(NamedTuple):
    """The figures of one strategy."""

    strategy: str
    events_per_s: float
    adds_per_s: float
    matches: int  # of all events, each once


class ResultsDiffer(Exception):
    """Two strategies returned different results for the same event."""


def formulas(filters: int, events: int, seed: int) -> Workload:
    """Build formulas like OIF's: a user's action, thresholds, and absent attributes."""
    random = Random(seed)  # noqa: S311 - a reproducible mix, no secret
    made = [specs_of(_formula(random)) for _ in range(filters)]
    return Workload(made, [_formula_event(random) for _ in range(events)])


def pairs(filters: int, events: int, seed: int) -> Workload:
    """Build equalities like SUN's: a few pairs each, some of them popular."""
    random = Random(seed)  # noqa: S311 - a reproducible mix, no secret
    made = []
    for _ in range(filters):
        names = random.sample(_FIELDS, random.randint(1, 3))
        nodes = tuple(_equal(name, _skewed(random)) for name in names)
        made.append(specs_of(And(nodes)))
    return Workload(made, [_pairs_event(random) for _ in range(events)])


MIXES: dict[str, Callable[[int, int, int], Workload]] = {"formulas": formulas, "pairs": pairs}


def time_all(
    work: Workload, seconds: float, strategies: Sequence[str] = tuple(STRATEGIES)
) -> list[StrategyTiming]:
    """Run each strategy on the same work for about `seconds`, and over all events at least once.
    Raises ResultsDiffer.
    """
    found: list[StrategyTiming] = []
    expected: list[list[int]] | None = None
    for strategy in strategies:
        timed, matched = _time(strategy, work, seconds)
        if expected is not None and matched != expected:
            raise ResultsDiffer(f"{strategy} and {found[0].strategy} return different matches")
        expected = matched
        found.append(timed)
    return found


def table(mix: str, work: Workload, timed: Sequence[StrategyTiming]) -> str:
    """Format the figures as a table, the fastest strategy first."""
    slowest = min(one.events_per_s for one in timed)
    lines = [
        f"{mix}: {len(work.filters)} filters, {len(work.events)} events,"
        f" {timed[0].matches / len(work.events):.1f} matches per event, equal for all strategies",
        f"{'strategy':<10}{'events/s':>12}{'µs/event':>14}{'speedup':>9}{'adds/s':>10}",
    ]
    lines += (
        f"{one.strategy:<10}{one.events_per_s:>12,.0f}{1e6 / one.events_per_s:>14,.1f}"
        f"{one.events_per_s / slowest:>9,.1f}{one.adds_per_s:>10,.0f}"
        for one in sorted(timed, key=lambda one: -one.events_per_s)
    )
    return "\n".join(lines)


def _time(strategy: str, work: Workload, seconds: float) -> tuple[StrategyTiming, list[list[int]]]:
    matcher = FilterMatcher(new_matcher(strategy))
    began = perf_counter()
    for id, specs in enumerate(work.filters):
        matcher.add(id, specs)
    filled = perf_counter()
    matched = [sorted(matcher.match(event)) for event in work.events]
    done, spent, asked = 0, 0.0, perf_counter()
    while not done or spent < seconds:
        for _ in range(_BATCH):
            matcher.match(work.events[done % len(work.events)])
            done += 1
        spent = perf_counter() - asked
    adds_per_s = len(work.filters) / max(filled - began, 1e-9)
    found = sum(map(len, matched))
    return StrategyTiming(strategy, done / spent, adds_per_s, found), matched


def _formula(random: Random) -> Node:
    kinds = random.sample(_KINDS, random.randint(1, 2))
    kind = Or(tuple(_equal("type", name) for name in kinds))
    more: list[Node] = [_equal("user", random.choice(_USERS))]
    if random.random() < 0.5:
        field = Path(random.choice(_FIELDS))
        more.append(Compare(">", field, Const(random.randint(0, 99))))
    if random.random() < 0.2:
        more.append(Not(Exists(Path(random.choice(_FIELDS)))))
    if random.random() < 0.1:
        more = more[1:] or more
    return And((kind, *more))


def _formula_event(random: Random) -> Event:
    attributes: dict[str, object] = {
        name: random.randint(0, 99) for name in random.sample(_FIELDS, random.randint(0, 6))
    }
    if random.random() < 0.9:
        attributes["type"] = random.choice(_KINDS)
    if random.random() < 0.8:
        attributes["user"] = random.choice(_USERS)
    return Event("site", "trace", attributes)


def _pairs_event(random: Random) -> Event:
    names = random.sample(_FIELDS, random.randint(4, 12))
    return Event("site", "trace", {name: _skewed(random) for name in names})


def _equal(name: str, value: str | int) -> Node:
    return Compare("=", Path(name), Const(value))


def _skewed(random: Random) -> int:
    """Return a random number; small ones are popular."""
    return int(random.paretovariate(0.8)) % 200
