"""The events that the outputs of a group's engines become, and what they mean for its patterns.
Plain module.

An output is an event of its own, caused by the event that completed it: `cause` is its position,
`correlation`, `traceparent` and the environment are passed on. Its hops are one less than those of
that event, so patterns that cause each other stop (RDY-33).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event.envelope import HUB_SOURCE, Event
from eventhub.event.inbound import check_attributes
from eventhub.event.json_codec import time_text
from eventhub.eventlog.system import SYSTEM_DOMAIN, Announcement
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
)

HOP_LIMIT = "eventhub.hop_limit"
PATTERN = "eventhub.pattern"
CAUSES = "eventhub.causes"


class RunningVersion(NamedTuple):
    """A version of a pattern that the engines have. `reports_matches`: see HubPattern."""

    version: int
    pattern: int
    name: str
    number: int
    reports_matches: bool


class OutputOwner(NamedTuple):
    """The group that outputs come from. `output_stream`: an id; None: the stream of the event that
    completed a match. `streams`: names by id.
    """

    id: int
    name: str
    client: str
    output_stream: int | None
    streams: Mapping[int, str]


class OutputEvent(NamedTuple):
    """An event to append. `stream`: an id, or the name of a stream of the zone; `bytes`: about
    those that it takes.
    """

    running: RunningVersion
    stream: int | str
    event: Event
    bytes: int = 0


class LostOutput(NamedTuple):
    """An output that is not appended, or what an engine discarded: `times` since the last one."""

    running: RunningVersion
    reason: str
    times: int


class PatternEnding(NamedTuple):
    """A pattern that no longer runs. `state`: ended or suspended; `fault`: why."""

    running: RunningVersion
    state: str
    fault: dict[str, Any] | None


class MatchedPattern(NamedTuple):
    """A pattern that matched once more."""

    running: RunningVersion


class FailedRun(NamedTuple):
    """A run of a program that had no effect."""

    running: RunningVersion
    fault: dict[str, Any]


Effect = OutputEvent | LostOutput | PatternEnding | MatchedPattern | FailedRun


def effects_of(
    outputs: Iterable[AgentOutput],
    running: Mapping[int, RunningVersion],
    owner: OutputOwner,
    cause: Event,
    numbers: Iterator[int],
) -> Iterator[Effect]:
    """Yield what outputs of one event mean, in order. `cause`: the event; `numbers`: of its outputs
    that are events.
    """
    for output in outputs:
        version = running[output.pattern]
        position = output.position
        if isinstance(output, Match):
            yield MatchedPattern(version)
        event = _event_of(output, version, owner, position)
        if event is not None:
            stream: int | str = owner.output_stream or position.stream
            if isinstance(output, Announce) and output.stream is not None:
                stream = output.stream
            named = OutputEvent(version, stream, event)
            yield _caused(named, output, owner, cause, next(numbers))
        elif isinstance(output, Dropped):
            yield LostOutput(version, output.reason, output.count)
        elif isinstance(output, Ended):
            yield PatternEnding(version, "ended", None)
        elif isinstance(output, ProgramSuspended):
            yield PatternEnding(version, "suspended", _fault(output, owner))
        elif isinstance(output, ProgramFailed):
            yield FailedRun(version, _fault(output, owner))


def _event_of(
    output: AgentOutput, version: RunningVersion, owner: OutputOwner, position: EventPosition
) -> Event | None:
    """Return the event of an output without what its cause adds; None if it is none."""
    if isinstance(output, Announce):
        domain, type, attributes = output.event
        return Event(domain, type, attributes, source=owner.client)
    if isinstance(output, Notify) and not version.reports_matches:  # else the match says it
        to = owner.client if output.target is None else f"{owner.client}/{output.target}"
        alone = [*output.bindings.values()]
        if len(alone) == 1 and len(alone[0]) == 1 and isinstance(alone[0][0], NewEvent):
            domain, type, attributes = alone[0][0]
            return Event(domain, type, attributes, source=owner.client, destinations=(to,))
        return _report("pattern.notified", output, version, owner)._replace(destinations=(to,))
    if isinstance(output, Match) and version.reports_matches:
        found = _report("pattern.matched", output, version, owner)
        return found._replace(destinations=(owner.client,))
    return None


def _report(
    type: str, output: Match | Notify, version: RunningVersion, owner: OutputOwner
) -> Event:
    bindings, is_complete = _bindings(output.bindings, owner)
    times = [one.time_us for one in _positions(output.bindings)] or [output.position.time_us]
    attributes: dict[str, Any] = {
        "pattern": version.pattern,
        "name": version.name,
        "group": owner.name,
        "version": version.number,
        "bindings": bindings,
        "first_at": time_text(min(times)),
        "last_at": time_text(max(times)),
    }
    if output.key is not None:
        attributes["key"] = output.key
    if not is_complete:
        attributes["truncated"] = True
    return Event(SYSTEM_DOMAIN, type, attributes, source=HUB_SOURCE, node="hub")


def _bindings(
    bindings: Mapping[str, Bound], owner: OutputOwner
) -> tuple[dict[str, list[dict[str, Any]]], bool]:
    """Return what each variable is bound to, and whether that is all of it."""
    left = limits.PATTERN_BOUND_NAMED_MAX
    named: dict[str, list[dict[str, Any]]] = {}
    for variable, bound in bindings.items():
        named[variable] = [_bound(one, owner) for one in bound[:left]]
        left -= len(named[variable])
    return named, all(len(named[one]) == len(bound) for one, bound in bindings.items())


def _bound(bound: EventPosition | NewEvent, owner: OutputOwner) -> dict[str, Any]:
    if isinstance(bound, NewEvent):
        return bound._asdict()
    return cursor_json(bound, owner)


def cursor_json(position: EventPosition, owner: OutputOwner) -> dict[str, Any]:
    """Return the position of an event, as events of the hub name it."""
    stream = owner.streams.get(position.stream, "")
    return {"stream": stream, "segment": position.segment, "sequence": position.sequence}


def _positions(bindings: Mapping[str, Bound]) -> list[EventPosition]:
    return sorted(
        {one for bound in bindings.values() for one in bound if isinstance(one, EventPosition)}
    )


def _caused(
    output: OutputEvent, source: AgentOutput, owner: OutputOwner, cause: Event, index: int
) -> Effect:
    """Add what the causing event passes on; return that the output is lost if it may not go on."""
    hops = hops_left(cause) - 1
    if hops <= 0:
        return LostOutput(output.running, "hop_limit", 1)
    event, size = output.event, _attributes_bytes(output.event)
    if size is None:
        return LostOutput(output.running, "event_too_large", 1)
    causes = _positions(source.bindings) if isinstance(source, Match | Notify) else []
    if isinstance(source, Announce):
        causes = list(source.causes)
    position = source.position
    named = causes[-limits.PATTERN_CAUSES_NAMED_MAX :] or [position]
    environment = {
        **(cause.environment or {}),
        PATTERN: str(output.running.pattern),
        CAUSES: " ".join(f"{one.segment}:{one.sequence}" for one in named),
        HOP_LIMIT: str(hops),
    }
    return output._replace(
        bytes=size + sum(len(name) + len(value) for name, value in environment.items()),
        event=event._replace(
            id=f"pattern-{owner.id}-{position.order}-{index}",
            environment=environment,
            cause=f"{position.segment}:{position.sequence}",
            correlation=cause.correlation,
            traceparent=cause.traceparent,
        ),
    )


def hops_left(event: Event) -> int:
    """Return how many outputs in a row an event may still cause."""
    text = (event.environment or {}).get(HOP_LIMIT, "")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        return limits.PATTERN_HOPS_MAX
    return min(int(text), limits.PATTERN_HOPS_MAX)


def _attributes_bytes(event: Event) -> int | None:
    """Return the size of an event's attributes; None if an emit of the event would be refused."""
    most = limits.TEXT_CHARS_MAX
    if not event.type or max(len(event.domain), len(event.type)) > most:
        return None
    try:
        return len(check_attributes(event.attributes))
    except EventHubError:
        return None


def _fault(output: ProgramFailed | ProgramSuspended, owner: OutputOwner) -> dict[str, Any]:
    fault = output.fault
    return {
        "code": fault.code,
        "message": fault.message,
        "line": fault.line,
        "column": fault.column,
        "event": cursor_json(output.position, owner),
    }


def announcement_of(
    type: str, running: RunningVersion, owner: OutputOwner, **more: Any
) -> Announcement:
    """Return an event of `system` about a pattern."""
    attributes = {
        "client": owner.client,
        "pattern_group": owner.id,
        "pattern": running.pattern,
        "name": running.name,
        "version": running.number,
        **more,
    }
    return Announcement(type, attributes)
