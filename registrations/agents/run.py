"""One run of an agent: what it may use, and its effects, which count only if it ends well.
Plain module.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eventhub.base import limits
from registrations.agents.errors import Fault, RunFault
from registrations.agents.machine import UNDEFINED, Machine
from registrations.agents.program import AgentProgram
from registrations.agents.recent import RecentMemory
from registrations.agents.values import (
    EventValue,
    ObjectValue,
    Value,
    json_of,
    size_of,
    type_of,
)
from registrations.patterns.pattern_engine import Announce, EventPosition, NewEvent, Notify, Output


@dataclass(slots=True)
class Agent:
    """An agent and what it remembers. `start`: the index up to which it knows no events;
    `failures`: failed runs in a row; `suspended`: why it does not run.
    """

    number: int
    program: AgentProgram
    memories: list[RecentMemory]
    start: int
    remembered: dict[str, Value] = field(default_factory=dict)
    failures: int = 0
    suspended: Fault | None = None
    dropped: int = 0


class ProgramFailed(NamedTuple):
    """A run that had no effect, because it failed."""

    pattern: int
    position: EventPosition
    fault: Fault


class ProgramSuspended(NamedTuple):
    """An agent that no longer runs, because it exceeded a limit or failed too often."""

    pattern: int
    position: EventPosition
    fault: Fault


AgentOutput = Output | ProgramFailed | ProgramSuspended


class AgentRun:
    """The host of one run."""

    def __init__(self, agent: Agent, event: EventValue) -> None:
        self.event = event
        self._agent = agent
        self._changes: dict[str, Value] = {}
        self._outputs: list[AgentOutput] = []

    def execute(self) -> Iterator[Sequence[AgentOutput]]:
        """Run the program; yield nothing from time to time, then its outputs or its fault."""
        machine = Machine(self._agent.program.codes, self)
        fault = machine.run(limits.AGENT_STEPS_AT_ONCE)
        while machine.code is not None:
            yield ()
            fault = machine.run(limits.AGENT_STEPS_AT_ONCE)
        yield self._ended(fault)

    def _ended(self, fault: Fault | None) -> list[AgentOutput]:
        agent, position = self._agent, self.event.position
        if fault is None:
            agent.failures = 0
            agent.remembered = self._remembered()
            return self._outputs
        agent.failures += 1
        if not fault.is_limit and agent.failures < limits.AGENT_FAILURES_MAX:
            return [ProgramFailed(agent.number, position, fault)]
        agent.suspended = fault
        return [ProgramSuspended(agent.number, position, fault)]

    def recent(self, number: int, count: int) -> Sequence[EventValue]:
        start = max(self._agent.start, self.event.index - count)
        return self._agent.memories[number].after(start)

    def recall(self, name: str) -> Value:
        if name in self._changes:
            return self._changes[name]
        return self._agent.remembered.get(name, UNDEFINED)

    def remember(self, name: str, value: Value) -> None:
        if value is not UNDEFINED:
            json_of(value)  # raises for an event
        self._changes[name] = value
        kept = self._remembered()
        if len(kept) > limits.AGENT_STATE_KEYS_MAX:
            most = limits.AGENT_STATE_KEYS_MAX
            raise RunFault("state_max", f"An agent remembers at most {most} names.")
        size = sum(size_of(one) + size_of(other) for one, other in kept.items())
        if size > limits.AGENT_STATE_BYTES_MAX:
            most = limits.AGENT_STATE_BYTES_MAX
            raise RunFault("state_max", f"What an agent remembers takes at most {most:,} bytes.")

    def notify(self, events: Sequence[EventValue]) -> None:
        most = limits.AGENT_NOTIFIED_EVENTS_MAX
        if len(events) > most:
            raise RunFault("value_too_large", f"A notification names at most {most} events.")
        bindings = {"events": tuple(event.position for event in events)}
        self._output(Notify(self._agent.number, None, self.event.position, bindings))

    def announce(self, domain: str, type: str, attributes: Value) -> None:
        if not type or max(len(domain), len(type)) > limits.TEXT_CHARS_MAX:
            most = limits.TEXT_CHARS_MAX
            raise RunFault("wrong_type", f"A type has 1 to {most:,} characters.")
        if not isinstance(attributes, ObjectValue):
            message = f"The attributes are an object, not a {type_of(attributes)}."
            raise RunFault("wrong_type", message)
        most = limits.ATTRIBUTES_COUNT_MAX
        if len(attributes.fields) > most:
            raise RunFault("value_too_large", f"An event has at most {most} attributes.")
        if attributes.size > limits.ATTRIBUTES_BYTES_MAX:
            most = limits.ATTRIBUTES_BYTES_MAX
            raise RunFault("value_too_large", f"The attributes take at most {most:,} bytes.")
        event = NewEvent(domain, type, json_of(attributes))
        position = self.event.position
        self._output(Announce(self._agent.number, None, position, event, (position,)))

    def _output(self, output: AgentOutput) -> None:
        if len(self._outputs) >= limits.AGENT_OUTPUTS_MAX:
            most = limits.AGENT_OUTPUTS_MAX
            raise RunFault("outputs_max", f"One run notifies and announces at most {most} times.")
        self._outputs.append(output)

    def _remembered(self) -> dict[str, Value]:
        if not self._changes:
            return self._agent.remembered
        both = {**self._agent.remembered, **self._changes}
        return {name: value for name, value in both.items() if value is not UNDEFINED}
