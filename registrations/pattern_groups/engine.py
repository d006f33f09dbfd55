"""All patterns of one group, in all languages: the engines of READY, of temporal patterns
and of agents over one index of filters. Plain module.

The versions of patterns are added and removed between two events, and `feed` takes every event that
the group may see, once, in one order. So the outputs are a function of the order of events and
changes, which the journal of the group records.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from msgspec import DecodeError, Struct, msgpack

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.agents.engine import AgentEngine
from registrations.agents.program import AgentProgram
from registrations.agents.run import AgentOutput
from registrations.filters.ast import Scalar
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.pattern_groups.consumed import ConsumedRun, ConsumedRuns
from registrations.pattern_groups.definition import Tree
from registrations.patterns.ast import AssignAction, Pattern
from registrations.patterns.checks import actions_of
from registrations.patterns.engine import PatternLoad, ReadyEngine
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.pattern_engine import EventPosition, Waiting
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.pattern import TemporalPattern

_VERSION = b"\x01"
_LEVEL = 1  # most of it is compressed already


class HubPattern(NamedTuple):
    """A version of a pattern, as engines take it. `recent`: it recognises earlier events too."""

    number: int
    compiled: Tree
    once: bool = False
    recent: bool = False

    @property
    def recalled(self) -> int:
        """The number of most recent events that it recognises."""
        if not self.recent:
            return 0
        match self.compiled:
            case TemporalPattern(memory=memory):
                return memory
            case AgentProgram(recent=recent):
                return max((one.count_max for one in recent), default=0)
        return 0

    @property
    def reports_matches(self) -> bool:
        """Whether its owner is notified of its matches: a READY pattern with other actions than
        assignments, and an agent, say themselves what happens.
        """
        if isinstance(self.compiled, Pattern):
            actions = actions_of(self.compiled.part)
            return all(isinstance(one, AssignAction) for one in actions)
        return isinstance(self.compiled, TemporalPattern)


class _SavedEngines(Struct, array_like=True):
    ready: bytes
    temporal: bytes
    agents: bytes
    consumed: tuple[int, list[ConsumedRun]]


_decoder = msgpack.Decoder(_SavedEngines)


class HubEngine:
    """The engines of one group. Concurrency: none. One task owns it; no method awaits."""

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self.leaves = LeafIndex(hierarchy)
        self.consumed = ConsumedRuns(limits.TEMPORAL_MEMORY_MAX)
        self.patterns: dict[int, HubPattern] = {}
        self._ready = ReadyEngine(self.leaves)
        self._temporal = TemporalEngine(hierarchy, leaves=self.leaves)
        self._agents = AgentEngine(hierarchy, leaves=self.leaves)

    def add(
        self, pattern: HubPattern, recent: Sequence[tuple[EventPosition, Event]] = ()
    ) -> list[AgentOutput]:
        """Add a pattern from the next event on, and return what it finds among the `recent` events,
        which end with the last one that was fed. Raises EventHubError for a filter that is too
        complex.
        """
        outputs: list[AgentOutput] = []
        match pattern.compiled:
            case Pattern() as ready:
                once = pattern.once or ready.once
                self._ready.add(pattern.number, replace(ready, once=once))
            case TemporalPattern() as temporal:
                outputs += self._temporal.add(
                    pattern.number, temporal, once=pattern.once, recent=recent
                )
            case AgentProgram() as program:
                self._agents.add(pattern.number, program, recent)
        self.patterns[pattern.number] = pattern
        return outputs

    def remove(self, number: int) -> None:
        """Remove a pattern and its state; do nothing if it does not exist."""
        self.patterns.pop(number, None)
        self._ready.remove(number)
        self._temporal.remove(number)
        self._agents.remove(number)

    def feed(self, position: EventPosition, event: Event) -> list[AgentOutput]:
        """Take the next event; return its outputs: those of READY's patterns, of temporal ones, and
        of agents, each in the order of their numbers.
        """
        return [*chain.from_iterable(self.steps(position, event))]

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[AgentOutput]]:
        """Take the next event like `feed`, and yield the outputs of one pattern after the other:
        thousands of patterns may take milliseconds each. The caller takes all steps before it
        calls another method.
        """
        self.consumed.add(position)
        yield from self._ready.steps(position, event)
        yield from self._temporal.steps(position, event)
        yield from self._agents.steps(position, event)

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of partial matches, without what agents remember."""
        return self._ready.memory_bytes + self._temporal.memory_bytes

    def shed_half(self, position: EventPosition, event: Event) -> list[AgentOutput]:
        """Discard half of the partial matches, for the memory of the process; the event is the last
        one. The outputs from then on are no function of the events, so the caller writes a
        snapshot.
        """
        return [*self._ready.shed_half(position, event), *self._temporal.shed_half(position)]

    def pass_time(self, time_us: int) -> None:
        """Take the time of an event that concerns no pattern in READY, instead of the event."""
        self._ready.pass_time(time_us)

    def load(self, number: int) -> PatternLoad | None:
        """Return what a pattern in READY holds and has discarded; None for other languages."""
        if isinstance(self.patterns[number].compiled, Pattern):
            return self._ready.load(number)
        return None

    def state(self) -> bytes:
        """Return the state of all engines, and which events were consumed last, with the version of
        the format.
        """
        saved = _SavedEngines(
            self._ready.state(),
            self._temporal.state(),
            self._agents.state(),
            self.consumed.saved(),
        )
        return _VERSION + zlib.compress(msgpack.encode(saved), _LEVEL)

    def restore(self, state: bytes) -> None:
        """Replace the state of an engine that has the same patterns; the outputs from then on equal
        those of the engine that returned it. Raises ValueError for an unknown format.
        """
        if state[:1] != _VERSION:
            raise ValueError("the state of the pattern group has an unknown format")
        try:
            saved = _decoder.decode(zlib.decompress(state[1:]))
        except (DecodeError, zlib.error) as error:
            raise ValueError("the state of the pattern group cannot be read") from error
        self._ready.restore(saved.ready)
        self._temporal.restore(saved.temporal)
        self._agents.restore(saved.agents)
        self.consumed.restore(*saved.consumed)

    def waiting(self, number: int, key: Scalar = None) -> Waiting | None:
        """Return what a pattern waits for, of one partition; None if it has no such partition."""
        match self.patterns[number].compiled:
            case Pattern():
                return self._ready.waiting(number, key)
            case TemporalPattern():
                return self._temporal.waiting(number, key)
        return self._agents.waiting(number, key)

    def keys(self, number: int) -> Iterator[Scalar]:
        """Yield the keys of a pattern's partitions, those with the oldest events first."""
        if isinstance(self.patterns[number].compiled, Pattern):
            yield from self._ready.keys(number)
        else:
            yield None
