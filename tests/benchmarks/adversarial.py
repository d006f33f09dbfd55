"""`python -m tests.benchmarks.adversarial [SET…]`: the cost of an event with 1,000 and with 50,000
rules of sets that are hard to index, in each engine of the match index, and in `access`, which
evaluates such tests one by one. It prints µs of CPU time for an event, the least of several
repetitions, and the growth from 1,000 to 50,000 rules. It stops if two sides find something else.

Beside them event-ruler and quamina, where they are (peers/__init__.py): these parse the event from
JSON. `stored` is the compiled engine with that work, as forwarders do it: from an event's stored
bytes, whose attributes are JSON. A peer that finds something else is marked; one that refuses the
rules, or takes minutes, has no line.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import decode, encode
from registrations.filters.eventbridge import parse_eventbridge
from registrations.match_index.engines.available import ENGINES, new_engine
from registrations.match_index.format.assemble import assemble
from registrations.match_index.format.columns import EntryCollector
from registrations.match_index.format.names import ALL_BITS
from registrations.match_index.format.shard import Shard, in_memory
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.spec import Specs, specs_of
from tests.benchmarks.peers import Peer, asked, peers

COUNTS = (1_000, 50_000)
EVENTS, REPETITIONS = 60, 5
REPETITION_S = 0.1  # at least, as of the peers
ONE_BY_ONE_MAX = 1_000  # rules in `access`, whose cost grows with them ...
EVENTS_ONE_BY_ONE = 3  # ... which takes milliseconds for each
SEED = 20_261_128
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Rule = dict[str, Any]
Attributes = dict[str, Any]


class HardSet(NamedTuple):
    """Rules by number of a set of so many, and events for it."""

    rule: Callable[[int, int], Rule]
    attributes: Callable[[Random, int], Attributes]


def host(number: int) -> str:
    """Return the name of a host; its middle and its end are its own."""
    zone = LETTERS[number % 26]
    return f"www.{zone}{number:05}.shop-{number * 7919 % 100_003:06}.example.com"


def one_host(random: Random, count: int) -> Attributes:
    return {"host": host(random.randrange(count)), "path": "/index.html", "size": 10}


def suffix(number: int, count: int) -> Rule:
    return {"host": [{"suffix": host(number)[12:]}]}


def wildcard(number: int, count: int) -> Rule:
    return {"host": [{"wildcard": f"www.*{number * 7919 % 100_003:06}*.com"}]}


def ignoring_case(number: int, count: int) -> Rule:
    return {"host": [{"equals-ignore-case": host(number).upper()}]}


def narrow_range(number: int, count: int) -> Rule:
    return {"value": [{"numeric": [">=", number, "<", number + 1]}]}


def overlapping_range(number: int, count: int) -> Rule:
    """Return a range of popular host; half of all contain any value, and each has another text."""
    width = count // 2
    return {
        "kind": ["popular"],
        "value": [{"numeric": [">", number - width, "<=", number]}],
        "host": [host(number)],
    }


def some_value(random: Random, count: int) -> Attributes:
    return {**one_host(random, count), "kind": "popular", "value": random.uniform(0, count)}


def alert(number: int, count: int) -> Rule:
    return {
        "kind": ["popular"],
        "value": [{"numeric": [">", number % 100]}],
        "path": [{"anything-but": ["/health", "/ready"]}],
        "host": [{"suffix": host(number)[12:]}],
    }


def anything_but(number: int, count: int) -> Rule:
    """Return a rule that nine in ten events do not match, because of its other value."""
    refused = [host((number + step) % count) for step in range(20)]
    return {"host": [{"anything-but": refused}], "size": [number % 1_000]}


def block(number: int, count: int) -> Rule:
    return {"source": [{"cidr": f"10.{number >> 12}.{number >> 4 & 255}.{number % 16 * 16}/28"}]}


def one_address(random: Random, count: int) -> Attributes:
    number = random.randrange(count)
    address = f"10.{number >> 12}.{number >> 4 & 255}.{number % 16 * 16 + 5}"
    return {**one_host(random, count), "source": address}


def either(number: int, count: int) -> Rule:
    return {
        "kind": ["popular"],
        "$or": [
            {"host": [host(number)]},
            {"path": [{"prefix": f"/{number:05}"}], "$or": [{"size": [number]}, {"value": [-1]}]},
        ],
    }


SETS = {
    "suffix": HardSet(suffix, one_host),
    "wildcard": HardSet(wildcard, one_host),
    "ignore_case": HardSet(ignoring_case, one_host),
    "narrow_range": HardSet(narrow_range, some_value),
    "overlapping_range": HardSet(overlapping_range, some_value),
    "alert": HardSet(alert, some_value),
    "anything_but": HardSet(anything_but, one_host),
    "cidr": HardSet(block, one_address),
    "nested_or": HardSet(either, some_value),
}


def events_of(hard: HardSet, count: int) -> list[Event]:
    random = Random(SEED)
    return [Event("bench", "reading", hard.attributes(random, count)) for _ in range(EVENTS)]


class Measured(NamedTuple):
    """The cost of an event, and what was found."""

    us: float
    found: list[set[int]]


def measured(match: Callable[[Any], Any], events: Sequence[Any]) -> Measured:
    found = [set(match(event)) for event in events]  # also warms up
    rounds = max(int(REPETITION_S / max(passed_s(match, events), 1e-6)), 1)
    best_s = min(passed_s(match, events, rounds) for _ in range(REPETITIONS))
    return Measured(1e6 * best_s / rounds / len(events), found)


def passed_s(match: Callable[[Any], Any], events: Sequence[Any], rounds: int = 1) -> float:
    began_s = process_time()
    for _ in range(rounds):
        for event in events:
            match(event)
    return process_time() - began_s


class Rules(NamedTuple):
    """The rules of one set and count, also as an index."""

    written: list[Rule]
    specs: list[Specs]
    shard: Shard


def rules_of(hard: HardSet, count: int) -> Rules:
    written = [{"detail": hard.rule(number, count)} for number in range(count)]
    expected, gathering = [specs_of(parse_eventbridge(rule)) for rule in written], EntryCollector()
    for id, one in enumerate(expected):
        gathering.add(id, one, {})
    return Rules(written, expected, in_memory(assemble(gathering.drain(), ALL_BITS)))


def accessed(rules: Rules) -> Callable[[Event], Any]:
    """Return the matcher `access`; a rule's alternatives have numbers of their own."""
    matcher = RarestPairMatcher()
    rule_of = [id for id, several in enumerate(rules.specs) for _ in several]
    for number, spec in enumerate(spec for several in rules.specs for spec in several):
        matcher.add(number, spec)
    return lambda event: [rule_of[number] for number in matcher.match(event)]


def from_stored(match: Callable[[Event], Any]) -> Callable[[bytes], Any]:
    """Return a matcher that reads the event first, as the peers do."""
    return lambda payload: match(decode(payload))


def main(names: list[str]) -> None:
    """Print a line for each set and side."""
    say(f"{'set':18} {'side':17} " + " ".join(f"{count:>10,}" for count in COUNTS) + "   growth")
    with tempfile.TemporaryDirectory() as folder:
        others = peers(Path(folder))
        for name in names or SETS:
            costs: dict[str, list[float]] = {}
            for count in COUNTS:
                for side, us in sides(SETS[name], count, others):
                    costs.setdefault(side, []).append(us)
            for side, values in costs.items():
                shown = " ".join(f"{us:10,.2f}" for us in values)
                growth = f"{values[-1] / values[0]:8.1f}" if len(values) > 1 else ""
                say(f"{name:18} {side:17} {shown} {growth}")


def sides(hard: HardSet, count: int, others: Mapping[str, Peer]) -> Iterator[tuple[str, float]]:
    """Yield what each side takes for an event. A peer that refuses the rules is left out."""
    rules, events = rules_of(hard, count), events_of(hard, count)
    documents = [{"detail": event.attributes} for event in events]
    found: list[set[int]] = []
    for engine in ENGINES:
        match = new_engine(engine, rules.shard).match
        got = measured(match, events)
        found = check(engine, got.found, found or got.found)
        yield engine, got.us
        if engine == "compiled":
            got = measured(from_stored(match), [encode(event) for event in events])
            found = check("stored", got.found, found)
            yield "stored", got.us
    for name, peer in others.items():
        if answer := asked(peer, rules.written, documents):
            yield name if answer.found == found else f"{name} (differs)", answer.us
    if count <= ONE_BY_ONE_MAX:
        got = measured(accessed(rules), events[:EVENTS_ONE_BY_ONE])
        check("access", got.found, found[:EVENTS_ONE_BY_ONE])
        yield "access", got.us


def check(side: str, found: list[set[int]], expected: list[set[int]]) -> list[set[int]]:
    """Return what was found. Raises SystemExit if something else was expected."""
    if found != expected:
        raise SystemExit(f"{side} finds something else.")
    return found


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
