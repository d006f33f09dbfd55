"""The engine of OIF's temporal patterns, which finds combinations of events over the most recent
ones of their streams (OIF-20 to OIF-22, OIF-29). Plain module.

It has the interface of `registrations/patterns/pattern_engine.py`, and one network for each set of
streams that registrations name.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import Scalar
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.pattern_engine import EventPosition, Output, PatternLeaves, Waiting
from registrations.temporal.join import Combination, oldest_of
from registrations.temporal.joins import JoinCounters, PatternJoins
from registrations.temporal.network import (
    RememberedEvent,
    TemporalNetwork,
    TemporalRegistration,
)
from registrations.temporal.network_state import (
    VERSION,
    NetworkState,
    network_state,
    restore_network,
)
from registrations.temporal.pattern import TemporalPattern
from registrations.temporal.plan import planned
from registrations.temporal.scope_key import ScopeKey, ViewerSees, sees_everything

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[NetworkState])


class PartialMatch(NamedTuple):
    """Events that match a part of a pattern. `bound`: them, by name; `values`: of the variables;
    `waits_for`: an event pattern as the text writes it, or what must leave the memory first;
    `expires_in`: after so many more events of the streams the first of them is forgotten.
    """

    bound: dict[str, EventPosition]
    values: dict[str, Scalar]
    waits_for: str
    expires_in: int


class TemporalEngine:
    """Temporal patterns under numbers that the caller gives. `leaves`: those of its group; without
    it, it has its own. Concurrency: none.
    """

    def __init__(
        self,
        hierarchy: TypeHierarchy = no_supertypes,
        sees: ViewerSees = sees_everything,
        leaves: PatternLeaves | None = None,
    ) -> None:
        self._hierarchy = hierarchy
        self._sees = sees
        self._leaves = LeafIndex(hierarchy) if leaves is None else leaves
        self._networks: dict[ScopeKey, TemporalNetwork] = {}
        self._by_stream: dict[int, list[ScopeKey]] = {}
        self._keys: dict[int, ScopeKey] = {}  # of each registration

    def add(
        self,
        number: int,
        pattern: TemporalPattern,
        scope: ScopeKey,
        *,
        once: bool = False,
        recent: Sequence[RememberedEvent] = (),
    ) -> list[Output]:
        """Add a pattern over the events of a scope, which replaces another under that number.

        `once`: it ends with its first match. `recent`: the last events of the scope up to the
        latest one that was fed, as many as its memory has, if there are: then matches of these are
        returned, and later events are joined with them. Without it, it remembers later events only.
        Raises TemporalTooLarge for a filter that is too complex, ValueError if `recent` does not
        end with the latest event.
        """
        registration = TemporalRegistration(planned(pattern), once)
        self.remove(number)
        network = self._networks.get(scope)
        if network is None:
            network = self._networks[scope] = self._network()
            self._index()
        outputs = network.add(number, registration, recent)
        self._keys[number] = scope
        return outputs

    def remove(self, number: int) -> None:
        """Remove a pattern with its partial matches; do nothing if it does not exist."""
        key = self._keys.pop(number, None)
        if key is None:
            return
        network = self._networks[key]
        network.remove(number)
        if not network.registrations:
            del self._networks[key]
            self._index()

    def feed(self, position: EventPosition, event: Event) -> list[Output]:
        """Take the next event, whose position is after all others, and return the outputs that it
        causes.
        """
        return [*chain.from_iterable(self.steps(position, event))]

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[Output]]:
        """Take the next event like `feed`, and yield the outputs of one pattern after the other.
        The caller takes all steps before it calls another method.
        """
        for key in self._by_stream.get(position.stream, ()):
            if self._sees(key.viewer, position, event):
                yield from self._networks[key].steps(position, event)

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of all remembered events and partial matches."""
        return sum(one.memory_bytes for one in self._networks.values())

    def shed_half(self, position: EventPosition) -> list[Output]:
        """Forget half of what is remembered; the position is that of the last event."""
        networks = self._networks.values()
        return [output for one in networks for output in one.shed_half(position)]

    def state(self) -> bytes:
        """Return what the patterns remember, with the version of its format."""
        states = [network_state(key, network) for key, network in self._networks.items()]
        return bytes([VERSION]) + _ENCODER.encode(states)

    def restore(self, state: bytes) -> None:
        """Replace what the patterns remember. The outputs from then on equal those of the engine
        that returned the state. Raises ValueError for an unknown format.
        """
        if state[:1] != bytes([VERSION]):
            raise ValueError("the state of temporal patterns has an unknown format")
        stored = {one.key: one for one in _DECODER.decode(state[1:])}
        for key, network in self._networks.items():
            fresh = self._networks[key] = self._network()
            if key in stored:
                restore_network(fresh, stored[key], network.registrations)
            else:
                for number, registration in sorted(network.registrations.items()):
                    fresh.add(number, registration, ())
            network.close()

    def waiting(self, pattern: int, key: Scalar = None) -> Waiting | None:
        """Return what a pattern waits for, with its partial matches, the longest first; None if
        it does not exist. A temporal pattern has no partitions.
        """
        joins = self._joins(pattern)
        if joins is None or key is not None:
            return None
        children = tuple(
            Waiting(one.waits_for, "waiting", None, None, {n: (p,) for n, p in one.bound.items()})
            for one in self.partial_matches(pattern)
        )
        status = "matched" if joins.is_ended else "waiting"
        return Waiting(joins.plan.pattern.text, status, None, None, {}, children)

    def partial_matches(self, pattern: int) -> list[PartialMatch]:
        """Return the partial matches of a pattern, the longest first, up to a limit."""
        joins = self._joins(pattern)
        if joins is None:
            return []
        now = self._networks[self._keys[pattern]].index
        shown = joins.partial(now)[: limits.TEMPORAL_SHOWN_MAX]
        return [_partial_match(joins, level, combination, now) for level, combination in shown]

    @property
    def counters(self) -> JoinCounters:
        """The work of all joins of the present patterns."""
        total = JoinCounters()
        for network in self._networks.values():
            for joins in network.joins.values():
                total.examined += joins.counters.examined
                total.stored += joins.counters.stored
                total.found += joins.counters.found
        return total

    def _network(self) -> TemporalNetwork:
        return TemporalNetwork(self._leaves, self._hierarchy)

    def _joins(self, pattern: int) -> PatternJoins | None:
        key = self._keys.get(pattern)
        return None if key is None else self._networks[key].joins[pattern]

    def _index(self) -> None:
        """Index the networks by stream again, in an order that is the same after a restore."""
        self._by_stream = {}
        for key in sorted(self._networks):
            for stream in key.streams:
                self._by_stream.setdefault(stream, []).append(key)


def _partial_match(
    joins: PatternJoins, level: int, combination: Combination, now: int
) -> PartialMatch:
    plan = joins.plan
    names = [f"${join.number + 1}" for join in plan.joins]
    bound = sorted((name, entry.position) for name, entry in zip(names, combination, strict=False))
    values = {
        name: combination[slot.level].values[slot.field]
        for name, slot in plan.slots.items()
        if slot.level <= level
    }
    if level + 1 < len(plan.joins):
        waits_for = plan.pattern.events[plan.joins[level + 1].number].text()
    else:
        waits_for = " ".join(one.text() for one in plan.pattern.absent)
    expires_in = oldest_of(combination) + joins.memory - now
    return PartialMatch(dict(bound), values, waits_for, expires_in)
