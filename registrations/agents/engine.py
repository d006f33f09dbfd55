"""The engine of agents: registrations that are programs, which run for events, examine recent ones,
remember values, notify and announce (OIF-23). Plain module.

It has the interface of `registrations/patterns/pattern_engine.py`; its outputs may also be failed
and suspended programs. A run that fails has no effect. A run that exceeds a limit suspends its
agent, and so do AGENT_FAILURES_MAX failed runs in a row.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from eventhub.event.envelope import Event
from registrations.agents.program import AgentProgram
from registrations.agents.run import AgentOutput
from registrations.agents.scope import AgentScope, RememberedEvent
from registrations.agents.scope_state import decoded, encoded, restored_scope
from registrations.filters.ast import Scalar
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.pattern_engine import EventPosition, PatternLeaves, Waiting


class AgentEngine:
    """Agents under numbers that the caller gives. `leaves`: those of its group; without it, it has
    its own. Concurrency: none.
    """

    def __init__(
        self,
        hierarchy: TypeHierarchy = no_supertypes,
        leaves: PatternLeaves | None = None,
    ) -> None:
        self._hierarchy = hierarchy
        self._leaves = LeafIndex(hierarchy) if leaves is None else leaves
        self._scope = self._new_scope()

    def add(
        self, number: int, program: AgentProgram, recent: Sequence[RememberedEvent] = ()
    ) -> None:
        """Add an agent, which replaces another under that number.

        `recent`: the last events up to the latest one that was fed, which the agent can examine;
        without it, it knows later events only. Raises ValueError if `recent` does not end with the
        latest event.
        """
        self.remove(number)
        self._scope.add(number, program, recent)

    def remove(self, number: int) -> None:
        """Remove an agent with what it remembers; do nothing if it does not exist."""
        self._scope.remove(number)
        if not self._scope.agents:  # so it is fed no events, and forgets where it was
            self._scope = self._new_scope()

    def feed(self, position: EventPosition, event: Event) -> list[AgentOutput]:
        """Take the next event, whose position is after all others, and return the outputs of the
        agents that it starts.
        """
        return [*chain.from_iterable(self.steps(position, event))]

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[AgentOutput]]:
        """Take the next event like `feed`, and yield the outputs of one agent after the other.
        The caller takes all steps before it calls another method.
        """
        if self._scope.agents:
            yield from self._scope.steps(position, event)

    def state(self) -> bytes:
        """Return what the agents remember, and the recent events that they examine, with the
        version of its format.
        """
        return encoded(self._scope)

    def restore(self, state: bytes) -> None:
        """Replace what the agents remember. The outputs from then on equal those of the engine that
        returned the state. An agent with another program remembers nothing. Raises ValueError for
        an unknown format.
        """
        stored = decoded(state)
        before, self._scope = self._scope, self._new_scope()
        programs = {number: agent.program for number, agent in sorted(before.agents.items())}
        if stored is not None and programs:
            restored_scope(self._scope, stored, programs)
        else:
            for number, program in programs.items():
                self._scope.add(number, program, ())
        before.close()

    def waiting(self, pattern: int, key: Scalar = None) -> Waiting | None:
        """Return whether an agent waits for events or is suspended (`inactive`); None if it does
        not exist.
        """
        agent = self._scope.agents.get(pattern)
        if agent is None or key is not None:
            return None
        status = "waiting" if agent.suspended is None else "inactive"
        return Waiting(agent.program.text, status, None, None, {})

    def _new_scope(self) -> AgentScope:
        return AgentScope(self._leaves, self._hierarchy)
