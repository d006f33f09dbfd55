"""The engine of OIF's temporal patterns, which finds combinations of events over the most recent
ones of their streams (OIF-20 to OIF-22, OIF-29). Plain module.

It has the interface of `registrations/patterns/pattern_engine.py`, and one network for all
registrations.
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
        leaves: PatternLeaves | None = None,
    ) -> None:
        self._hierarchy = hierarchy
        self._leaves = LeafIndex(hierarchy) if leaves is None else leaves
        self._network = self._new_network()

    def add(
        self,
        number: int,
        pattern: TemporalPattern,
        *,
        once: bool = False,
        recent: Sequence[RememberedEvent] = (),
    ) -> list[Output]:
        """Add a pattern, which replaces another under that number.

        `once`: it ends with its first match. `recent`: the last events up to the latest one that
        was fed, as many as its memory has, if there are: then matches of these are returned, and
        later events are joined with them. Without it, it remembers later events only.
        Raises TemporalTooLarge for a filter that is too complex, ValueError if `recent` does not
        end with the latest event.
        """
        registration = TemporalRegistration(planned(pattern), once)
        self.remove(number)
        return self._network.add(number, registration, recent)

    def remove(self, number: int) -> None:
        """Remove a pattern with its partial matches; do nothing if it does not exist."""
        self._network.remove(number)
        if not self._network.registrations:  # so it is fed no events, and forgets where it was
            self._network = self._new_network()

    def feed(self, position: EventPosition, event: Event) -> list[Output]:
        """Take the next event, whose position is after all others, and return the outputs that it
        causes.
        """
        return [*chain.from_iterable(self.steps(position, event))]

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[Output]]:
        """Take the next event like `feed`, and yield the outputs of one pattern after the other.
        The caller takes all steps before it calls another method.
        """
        if self._network.registrations:
            yield from self._network.steps(position, event)

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of all remembered events and partial matches."""
        return self._network.memory_bytes

    def shed_half(self, position: EventPosition) -> list[Output]:
        """Forget half of what is remembered; the position is that of the last event."""
        return self._network.shed_half(position)

    def state(self) -> bytes:
        """Return what the patterns remember, with the version of its format."""
        states = [network_state(self._network)] if self._network.registrations else []
        return bytes([VERSION]) + _ENCODER.encode(states)

    def restore(self, state: bytes) -> None:
        """Replace what the patterns remember. The outputs from then on equal those of the engine
        that returned the state. Raises ValueError for an unknown format.
        """
        if state[:1] != bytes([VERSION]):
            raise ValueError("the state of temporal patterns has an unknown format")
        stored = _DECODER.decode(state[1:])
        before, self._network = self._network, self._new_network()
        if stored and before.registrations:
            restore_network(self._network, stored[0], before.registrations)
        else:
            for number, registration in sorted(before.registrations.items()):
                self._network.add(number, registration, ())
        before.close()

    def waiting(self, pattern: int, key: Scalar = None) -> Waiting | None:
        """Return what a pattern waits for, with its partial matches, the longest first; None if
        it does not exist. A temporal pattern has no partitions.
        """
        joins = self._network.joins.get(pattern)
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
        joins = self._network.joins.get(pattern)
        if joins is None:
            return []
        now = self._network.index
        shown = joins.partial(now)[: limits.TEMPORAL_SHOWN_MAX]
        return [_partial_match(joins, level, combination, now) for level, combination in shown]

    @property
    def counters(self) -> JoinCounters:
        """The work of all joins of the present patterns."""
        total = JoinCounters()
        for joins in self._network.joins.values():
            total.examined += joins.counters.examined
            total.stored += joins.counters.stored
            total.found += joins.counters.found
        return total

    def _new_network(self) -> TemporalNetwork:
        return TemporalNetwork(self._leaves, self._hierarchy)


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
