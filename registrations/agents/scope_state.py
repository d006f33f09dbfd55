"""The state of agents as bytes: what each remembers, and the recent events that they examine.
Plain module.
"""

from hashlib import sha256
from typing import Any

import msgspec

from eventhub.event.envelope import Event
from registrations.agents.errors import Fault
from registrations.agents.program import AgentProgram
from registrations.agents.scope import AgentScope, event_value
from registrations.agents.values import json_of, value_of_json
from registrations.filters.printed import printed
from registrations.patterns.pattern_engine import EventPosition

VERSION = 1


class _StoredEvent(msgspec.Struct, array_like=True):
    index: int
    position: EventPosition
    event: Event


class _StoredRecent(msgspec.Struct, array_like=True):
    """The events of a memory, by index. `filter`: in predicate form."""

    filter: str
    complete_from: int
    indexes: list[int]


class _StoredAgent(msgspec.Struct, array_like=True):
    number: int
    digest: bytes
    start: int
    remembered: dict[str, Any]
    failures: int
    suspended: Fault | None
    dropped: int


class ScopeState(msgspec.Struct, array_like=True):
    """The state of all agents. `streams`: null; those of their group in older states."""

    streams: object
    index: int
    position: EventPosition | None
    events: list[_StoredEvent]
    memories: list[_StoredRecent]
    agents: list[_StoredAgent]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[ScopeState])


def encoded(scope: AgentScope) -> bytes:
    """Return the state of a scope, which is empty without agents, as bytes that begin with the
    version of the format.
    """
    return bytes([VERSION]) + _ENCODER.encode([_scope_state(scope)] if scope.agents else [])


def decoded(state: bytes) -> ScopeState | None:
    """Return the state in bytes; None if it is empty. Raises ValueError for an unknown format."""
    if state[:1] != bytes([VERSION]):
        raise ValueError("the state of agents has an unknown format")
    states = _DECODER.decode(state[1:])
    return states[0] if states else None


def _scope_state(scope: AgentScope) -> ScopeState:
    events: dict[int, _StoredEvent] = {}
    memories: list[_StoredRecent] = []
    for memory in sorted(scope.memories.values(), key=lambda one: printed(one.filter)):
        memory.remove_until(scope.index - memory.count)
        indexes = [one.index for one in memory.events]
        for one in memory.events:
            events[one.index] = _StoredEvent(one.index, one.position, one.event)
        memories.append(_StoredRecent(printed(memory.filter), memory.complete_from, indexes))
    agents = [
        _StoredAgent(
            agent.number,
            _digest(agent.program),
            agent.start,
            {name: json_of(value) for name, value in agent.remembered.items()},
            agent.failures,
            agent.suspended,
            agent.dropped,
        )
        for _, agent in sorted(scope.agents.items())
    ]
    return ScopeState(None, scope.index, scope.position, list(events.values()), memories, agents)


def restored_scope(scope: AgentScope, state: ScopeState, programs: dict[int, AgentProgram]) -> None:
    """Fill a new scope with these programs and a state. Agents that the state lacks, or has with
    another program, know later events only.
    """
    scope.index, scope.position = state.index, state.position
    for number, program in programs.items():
        scope.add(number, program, ())
    events = {one.index: event_value(one.index, one.position, one.event) for one in state.events}
    stored = {one.filter: one for one in state.memories}
    for memory in scope.memories.values():
        found = stored.get(printed(memory.filter))
        if found is not None:
            memory.put_before([events[index] for index in found.indexes], found.complete_from)
    for one in state.agents:
        agent = scope.agents.get(one.number)
        if agent is not None and one.digest == _digest(agent.program):
            agent.start, agent.failures, agent.dropped = one.start, one.failures, one.dropped
            agent.suspended = one.suspended
            agent.remembered = {
                name: value_of_json(value) for name, value in one.remembered.items()
            }


def _digest(program: AgentProgram) -> bytes:
    return sha256(program.text.encode()).digest()[:12]
