"""The oracle: expected deliveries from the bounds and pairs of registrations and the names of
events. Plain; shares nothing with the hub's matchers.

Everything that a registration can filter on follows from an event's number modulo `PERIOD`, so a
filter is the set of the remainders that it matches.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.chaos.events import DOMAIN, PERIOD, Name, facts_of, type_of

Expected = dict[tuple[int, int], list[int]]  # (endpoint, sequence) -> registrations, ascending


class Version(NamedTuple):
    """A version of a registration. `bounds`: by stream, the sequences after which (exclusive) and
    until which (inclusive, None: no end) it is in force.
    """

    id: int
    registration: int
    number: int
    bounds: dict[str, tuple[int, int | None]]
    expected_rows: frozenset[int]  # remainders
    endpoint: int | None


def remainders_of(filter: dict[str, Any]) -> frozenset[int]:
    """Return the remainders of events that have the filter's domain, type and attributes."""
    return frozenset(n for n in range(PERIOD) if _wants(filter, n))


def _wants(filter: dict[str, Any], number: int) -> bool:
    if filter.get("domain") not in (None, DOMAIN):
        return False
    if filter.get("type") not in (None, type_of(number)):
        return False
    facts = facts_of(number)
    facts["place.city"] = facts["place"]["city"]
    pairs = filter.get("attributes") or {}
    return all(name in facts and facts[name] == value for name, value in pairs.items())


def remainders(names: Iterable[str]) -> list[int]:
    """Return the remainders of the events' numbers."""
    return [Name.parse(name).number % PERIOD for name in names]


def expected(
    versions: Iterable[Version], stream: str, first: int, events: Sequence[int]
) -> Expected:
    """Return the expected deliveries of a stream's events. `events` are remainders, of the
    sequences from `first` on.
    """
    found: Expected = {}
    last = first + len(events) - 1
    for version in versions:
        if version.endpoint is None or stream not in version.bounds:
            continue
        since, until = version.bounds[stream]
        begin = max(since + 1, first)
        end = last if until is None else min(until, last)
        for sequence in range(begin, end + 1):
            if events[sequence - first] in version.expected_rows:
                registrations = found.setdefault((version.endpoint, sequence), [])
                registrations.append(version.registration)
    for registrations in found.values():
        registrations.sort()
    return found
