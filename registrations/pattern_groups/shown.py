"""Outputs and partial matches of patterns as JSON, for people. Plain module."""

from collections.abc import Mapping
from typing import Any

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from registrations.agents.run import AgentOutput, ProgramFailed, ProgramSuspended
from registrations.patterns.pattern_engine import (
    Announce,
    Bound,
    Dropped,
    Ended,
    EventPosition,
    Match,
    NewEvent,
    Notify,
    Waiting,
)

StreamNames = Mapping[int, str]


def output_json(output: AgentOutput, names: StreamNames) -> dict[str, Any]:
    """Return an output of an engine."""
    found: dict[str, Any]
    match output:
        case Match():
            found = {"output": "match", "key": output.key}
            return {**found, "bindings": _bindings(output.bindings, names)}
        case Notify():
            found = {"output": "notify", "key": output.key, "target": output.target}
            return {**found, "bindings": _bindings(output.bindings, names)}
        case Announce():
            found = {"output": "announce", "key": output.key, "stream": output.stream}
            return {**found, "event": _new_event(output.event)}
        case Dropped():
            found = {"output": "dropped", "key": output.key}
            return {**found, "reason": output.reason, "count": output.count}
        case Ended():
            return {"output": "ended"}
        case ProgramFailed() | ProgramSuspended():
            word = "failed" if isinstance(output, ProgramFailed) else "suspended"
            return {"output": word, "fault": output.fault._asdict()}


def waiting_json(waiting: Waiting, names: StreamNames) -> dict[str, Any]:
    """Return a part of a pattern with what it has bound and waits for."""
    return {
        "element": waiting.element,
        "status": waiting.status,
        "since": None if waiting.since is None else position_json(waiting.since, names),
        "expires_at": None if waiting.expires_us is None else time_text(waiting.expires_us),
        "bound": _bindings(waiting.bound, names),
        "children": [waiting_json(child, names) for child in waiting.children],
    }


def position_json(position: EventPosition, names: StreamNames) -> dict[str, Any]:
    """Return the position of an event. One that is not stored has its number only."""
    found: dict[str, Any] = {"order": position.order, "sequence": position.sequence}
    if position.segment:
        found |= {"stream": names.get(position.stream), "segment": position.segment}
    return {**found, "appended_at": time_text(position.time_us)}


def _bindings(bindings: Mapping[str, Bound], names: StreamNames) -> dict[str, list[Any]]:
    most = limits.PATTERN_BOUND_SHOWN_MAX
    return {
        name: [
            _new_event(one) if isinstance(one, NewEvent) else position_json(one, names)
            for one in bound[:most]
        ]
        for name, bound in bindings.items()
    }


def _new_event(event: NewEvent) -> dict[str, Any]:
    return {"domain": event.domain, "type": event.type, "attributes": event.attributes}
