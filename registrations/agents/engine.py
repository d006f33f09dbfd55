"""The engine of agents: registrations that are programs, which run for events, examine recent ones,
remember values, notify and announce (OIF-23). Plain module.

It has the interface of `registrations/patterns/pattern_engine.py`; its outputs may also be failed
and suspended programs. A run that fails has no effect. A run that exceeds a limit suspends its
agent, and so do AGENT_FAILURES_MAX failed runs in a row.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from registrations.agents.errors import Fault
from registrations.agents.program import AgentProgram
from registrations.agents.run import Agent, AgentOutput
from registrations.agents.scope import AgentScope, RememberedEvent
from registrations.agents.scope_state import decoded, encoded, restored_scope, scope_state
from registrations.agents.values import json_of
from registrations.filters.ast import Scalar
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.pattern_engine import EventPosition, PatternLeaves, Waiting
from registrations.temporal.scope_key import ScopeKey, ViewerSees, sees_everything


class AgentStatus(NamedTuple):
    """An agent for people. `steps`: of its last run; `failures`: failed runs in a row;
    `suspended`: why it does not run; None: it runs.
    """

    remembered: dict[str, Any]
    steps: int
    failures: int
    suspended: Fault | None


class AgentEngine:
    """Agents under numbers that the caller gives. `leaves`: those of its group; without it, it has
    its own. Concurrency: none.
    """

    def __init__(
        self,
        hierarchy: TypeHierarchy = no_supertypes,
        sees: ViewerSees = sees_everything,
        leaves: PatternLeaves | None = None,
    ) -> None:
        self._hierarchy = hierarchy
        self._leaves = LeafIndex(hierarchy) if leaves is None else leaves
        self._sees = sees
        self._scopes: dict[ScopeKey, AgentScope] = {}
        self._by_stream: dict[int, list[ScopeKey]] = {}
        self._keys: dict[int, ScopeKey] = {}  # of each agent

    def add(
        self,
        number: int,
        program: AgentProgram,
        scope: ScopeKey,
        recent: Sequence[RememberedEvent] = (),
    ) -> None:
        """Add an agent for the events of a scope, which replaces another under that number.

        `recent`: the last events of the scope up to the latest one that was fed, which the agent
        can examine; without it, it knows later events only. Raises ValueError if `recent` does not
        end with the latest event.
        """
        self.remove(number)
        agents = self._scopes.get(scope)
        if agents is None:
            agents = self._scopes[scope] = self._scope()
            self._index()
        agents.add(number, program, recent)
        self._keys[number] = scope

    def remove(self, number: int) -> None:
        """Remove an agent with what it remembers; do nothing if it does not exist."""
        key = self._keys.pop(number, None)
        if key is None:
            return
        self._scopes[key].remove(number)
        if not self._scopes[key].agents:
            del self._scopes[key]
            self._index()

    def resume(self, number: int) -> None:
        """Let a suspended agent run again; what it remembers is unchanged."""
        agent = self._agent(number)
        if agent is not None:
            agent.suspended, agent.failures = None, 0

    def feed(self, position: EventPosition, event: Event) -> list[AgentOutput]:
        """Take the next event, whose position is after all others, and return the outputs of the
        agents that it starts.
        """
        return [*chain.from_iterable(self.steps(position, event))]

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[AgentOutput]]:
        """Take the next event like `feed`, and yield the outputs of one agent after the other.
        The caller takes all steps before it calls another method.
        """
        for key in self._by_stream.get(position.stream, ()):
            if self._sees(key.viewer, position, event):
                yield from self._scopes[key].steps(position, event)

    def state(self) -> bytes:
        """Return what the agents remember, and the recent events that they examine, with the
        version of its format.
        """
        return encoded([scope_state(key, scope) for key, scope in self._scopes.items()])

    def restore(self, state: bytes) -> None:
        """Replace what the agents remember. The outputs from then on equal those of the engine that
        returned the state. An agent with another program remembers nothing. Raises ValueError for
        an unknown format.
        """
        stored = {one.key: one for one in decoded(state)}
        for key, scope in self._scopes.items():
            fresh = self._scope()
            programs = {number: agent.program for number, agent in sorted(scope.agents.items())}
            if key in stored:
                restored_scope(fresh, stored[key], programs)
            else:
                for number, program in programs.items():
                    fresh.add(number, program, ())
            self._scopes[key] = fresh
            scope.close()

    def waiting(self, pattern: int, key: Scalar = None) -> Waiting | None:
        """Return whether an agent waits for events or is suspended (`inactive`); None if it does
        not exist.
        """
        agent = self._agent(pattern)
        if agent is None or key is not None:
            return None
        status = "waiting" if agent.suspended is None else "inactive"
        return Waiting(agent.program.text, status, None, None, {})

    def status(self, number: int) -> AgentStatus | None:
        """Return the status of an agent; None if it does not exist."""
        agent = self._agent(number)
        if agent is None:
            return None
        remembered = {name: json_of(value) for name, value in agent.remembered.items()}
        return AgentStatus(remembered, agent.steps, agent.failures, agent.suspended)

    def _scope(self) -> AgentScope:
        return AgentScope(self._leaves, self._hierarchy)

    def _agent(self, number: int) -> Agent | None:
        key = self._keys.get(number)
        return None if key is None else self._scopes[key].agents[number]

    def _index(self) -> None:
        """Index the scopes by stream again, in an order that is the same after a restore."""
        self._by_stream = {}
        for key in sorted(self._scopes):
            for stream in key.streams:
                self._by_stream.setdefault(stream, []).append(key)
