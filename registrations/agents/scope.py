"""The agents on the same streams, and the recent events that they examine. Plain module."""

from collections.abc import Callable, Sequence

import orjson

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.agents.program import AgentProgram, RecentEvents
from registrations.agents.recent import RecentMemory
from registrations.agents.run import Agent, AgentOutput, AgentRun
from registrations.agents.values import EventValue
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy, holds
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.spec import specs_of
from registrations.matching.strategies import new_matcher
from registrations.patterns.pattern_engine import Dropped, EventPosition

# The index before that of the first event: an agent may know as many events before it.
BEFORE_FIRST = limits.AGENT_RECENT_MAX
_EVENT_BYTES = 500  # of an event's position and envelope
RememberedEvent = tuple[EventPosition, Event]


class AgentScope:
    """Agents under numbers that the caller gives. `index`: of the latest event. Concurrency:
    none.
    """

    def __init__(self, hierarchy: TypeHierarchy, clock: Callable[[], float] | None) -> None:
        self.index = BEFORE_FIRST
        self.position: EventPosition | None = None
        self.agents: dict[int, Agent] = {}
        self.memories: dict[Node, RecentMemory] = {}
        self._by_number: dict[int, RecentMemory] = {}
        self._numbers = 0
        self._triggers = FilterMatcher(new_matcher("access", hierarchy))
        self._filters = FilterMatcher(new_matcher("access", hierarchy))
        self._hierarchy = hierarchy
        self._clock = clock

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
        self._triggers.add(number, specs_of(program.trigger))
        for memory in memories:
            self._recall(memory, recent[-memory.count :])

    def remove(self, number: int) -> None:
        """Remove an agent with what it remembers; do nothing if it does not exist."""
        agent = self.agents.pop(number, None)
        if agent is None:
            return
        self._triggers.remove(number)
        for memory in agent.memories:
            memory.users.discard(number)
            if not memory.users and self.memories.pop(memory.filter, None) is not None:
                self._filters.remove(memory.number)
                del self._by_number[memory.number]
        for memory in self.memories.values():
            memory.count = max(
                one.count_max
                for user in memory.users
                for one in self.agents[user].program.recent
                if one.filter == memory.filter
            )

    def feed(self, position: EventPosition, event: Event) -> list[AgentOutput]:
        """Take the next event, run the agents that it starts, and return their outputs."""
        self.index += 1
        self.position = position
        due = sorted(self._triggers.match(event))
        filters = self._filters.match(event)
        if not due and not filters:
            return []
        value = event_value(self.index, position, event)
        for number in filters:
            self._by_number[number].add(value)
        while sum(memory.size for memory in self.memories.values()) > limits.AGENT_RECENT_BYTES_MAX:
            self._forget_largest()
        outputs: list[AgentOutput] = []
        for number in due:
            agent = self.agents[number]
            if agent.dropped:
                outputs.append(Dropped(number, None, position, "recent_bytes_max", agent.dropped))
                agent.dropped = 0
            if agent.suspended is None:
                outputs += AgentRun(agent, value).execute(self._clock)
        return outputs

    def _memory(self, recent: RecentEvents, number: int) -> RecentMemory:
        memory = self.memories.get(recent.filter)
        if memory is None:
            self._numbers += 1
            memory = RecentMemory(self._numbers, recent.filter, self.index + 1)
            self.memories[recent.filter] = self._by_number[self._numbers] = memory
            self._filters.add(self._numbers, specs_of(recent.filter))
        memory.users.add(number)
        memory.count = max(memory.count, recent.count_max)
        return memory

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
        """Forget the older half of the largest memory, for all of its agents."""
        largest = max(self.memories.values(), key=lambda one: (one.size, -min(one.users)))
        until = largest.events[(len(largest.events) - 1) // 2].index
        largest.remove_until(until)
        for number in largest.users:
            agent = self.agents[number]
            agent.dropped += max(until - max(agent.start, self.index - largest.count), 0)
            agent.start = max(agent.start, until)


def event_value(index: int, position: EventPosition, event: Event) -> EventValue:
    """Return an event as a value, without its body."""
    size = _EVENT_BYTES + len(orjson.dumps(event.attributes))
    return EventValue(index, position, event._replace(body=None), size)
