"""The agents on the same streams, and the recent events that they examine. Plain module."""

from collections.abc import Iterator, Sequence

import orjson

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.agents.program import AgentProgram, RecentEvents
from registrations.agents.recent import RecentMemory, RecentSize
from registrations.agents.run import Agent, AgentOutput, AgentRun
from registrations.agents.values import EventValue
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy, holds
from registrations.patterns.pattern_engine import Dropped, EventPosition, PatternLeaves

# The index before that of the first event: an agent may know as many events before it.
BEFORE_FIRST = limits.AGENT_RECENT_MAX
_BYTES_GOAL = 0.9  # of the limit, once it is exceeded
_EVENT_BYTES = 500  # of an event's position and envelope
RememberedEvent = tuple[EventPosition, Event]


class AgentScope:
    """Agents under numbers that the caller gives. `index`: of the latest event. Concurrency:
    none.
    """

    def __init__(self, leaves: PatternLeaves, hierarchy: TypeHierarchy) -> None:
        self.index = BEFORE_FIRST
        self.position: EventPosition | None = None
        self.agents: dict[int, Agent] = {}
        self.memories: dict[Node, RecentMemory] = {}
        self._leaves = leaves
        self._started: dict[int, dict[int, None]] = {}  # agents by the leaf of their trigger
        self._triggers: dict[int, int] = {}  # the leaf of each agent
        self._examined: dict[int, list[RecentMemory]] = {}  # by leaf
        self._total = RecentSize()
        self._hierarchy = hierarchy

    def add(self, number: int, program: AgentProgram, recent: Sequence[RememberedEvent]) -> None:
        """Add an agent, which replaces another under that number. It knows later events only,
        unless `recent` has the last events up to the latest one that the scope was fed.
        """
        self.remove(number)
        if recent and self.position is None:
            self.position = recent[-1][0]
        if recent and recent[-1][0] != self.position:
            raise ValueError("the recent events do not end with the latest one")
        recent = recent[-limits.AGENT_RECENT_MAX :]
        memories = [self._memory(one, number) for one in program.recent]
        self.agents[number] = Agent(number, program, memories, self.index - len(recent))
        leaf = self._triggers[number] = self._leaves.add(program.trigger)
        self._started.setdefault(leaf, {})[number] = None
        for memory in memories:
            self._recall(memory, recent[-memory.count :])

    def remove(self, number: int) -> None:
        """Remove an agent with what it remembers; do nothing if it does not exist."""
        agent = self.agents.pop(number, None)
        if agent is None:
            return
        leaf = self._triggers.pop(number)
        del self._started[leaf][number]
        if not self._started[leaf]:
            del self._started[leaf]
        self._leaves.remove(leaf)
        for memory, recent in zip(agent.memories, agent.program.recent, strict=True):
            memory.release(number, recent.count_max)
            if not memory.users:
                self._end(memory)

    def close(self) -> None:
        """Remove all agents."""
        for number in [*self.agents]:
            self.remove(number)

    def steps(self, position: EventPosition, event: Event) -> Iterator[Sequence[AgentOutput]]:
        """Take the next event, and yield the outputs of the agents that it starts, one after the
        other, and nothing between two parts of a run.
        """
        self.index += 1
        self.position = position
        leaves = self._leaves.match(event)
        due = sorted(number for leaf in leaves for number in self._started.get(leaf, ()))
        memories = [memory for leaf in leaves for memory in self._examined.get(leaf, ())]
        if not due and not memories:
            return
        value = event_value(self.index, position, event)
        for memory in memories:
            memory.add(value)
        if self._total.bytes > limits.AGENT_RECENT_BYTES_MAX:
            self._forget_largest()
        for number in due:
            agent = self.agents[number]
            if agent.dropped:
                dropped, agent.dropped = agent.dropped, 0
                yield [Dropped(number, None, position, "recent_bytes_max", dropped)]
            if agent.suspended is None:
                yield from AgentRun(agent, value).execute()

    def _memory(self, recent: RecentEvents, number: int) -> RecentMemory:
        memory = self.memories.get(recent.filter)
        if memory is None:
            leaf = self._leaves.add(recent.filter)
            memory = RecentMemory(leaf, recent.filter, self.index + 1, self._total)
            self.memories[recent.filter] = memory
            self._examined.setdefault(leaf, []).append(memory)
        memory.use(number, recent.count_max)
        return memory

    def _end(self, memory: RecentMemory) -> None:
        """Remove a memory without users."""
        del self.memories[memory.filter]
        self._examined[memory.leaf].remove(memory)
        if not self._examined[memory.leaf]:
            del self._examined[memory.leaf]
        self._leaves.remove(memory.leaf)

    def _recall(self, memory: RecentMemory, recent: Sequence[RememberedEvent]) -> None:
        """Add what a memory lacks of the recent events."""
        first = self.index - len(recent) + 1
        if not recent or first >= memory.complete_from:
            return
        missing = [
            event_value(index, position, event)
            for index, (position, event) in enumerate(recent, first)
            if index < memory.complete_from and holds(memory.filter, event, self._hierarchy)
        ]
        memory.put_before(missing, first)

    def _forget_largest(self) -> None:
        """Forget the older half of the largest memory, for all of its agents, then of the next one,
        until all are within their limit.
        """
        goal = limits.AGENT_RECENT_BYTES_MAX * _BYTES_GOAL
        while self._total.bytes > goal:
            filled = [one for one in self.memories.values() if one.events]
            for largest in sorted(filled, key=lambda one: (-one.size, min(one.users))):
                self._forget_half(largest)
                if self._total.bytes <= goal:
                    break

    def _forget_half(self, memory: RecentMemory) -> None:
        until = memory.events[(len(memory.events) - 1) // 2].index
        memory.remove_until(until)
        for number in memory.users:
            agent = self.agents[number]
            agent.dropped += max(until - max(agent.start, self.index - memory.count), 0)
            agent.start = max(agent.start, until)


def event_value(index: int, position: EventPosition, event: Event) -> EventValue:
    """Return an event as a value, without its body."""
    size = _EVENT_BYTES + len(orjson.dumps(event.attributes))
    return EventValue(index, position, event._replace(body=None), size)
