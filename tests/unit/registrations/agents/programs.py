"""Programs of tests: what they do for events."""

from typing import Any

from eventhub.event.envelope import Event
from registrations.agents.compiler import compile_program
from registrations.agents.engine import AgentEngine
from registrations.agents.errors import Fault
from registrations.agents.run import AgentOutput, ProgramFailed, ProgramSuspended
from registrations.patterns.pattern_engine import Announce, EventPosition, Notify


def position(number: int) -> EventPosition:
    return EventPosition(number, 1, "c0ffee", number, number * 1_000_000)


def event(attributes: dict[str, Any] | None = None) -> Event:
    return Event("d", "t", attributes or {})


def engine_of(*texts: str) -> AgentEngine:
    engine = AgentEngine()
    for number, text in enumerate(texts):
        engine.add(number, compile_program(text))
    return engine


def fed(engine: AgentEngine, *stream: dict[str, Any], first: int = 1) -> list[list[AgentOutput]]:
    """Return the outputs at each of some events."""
    return [engine.feed(position(n), event(one)) for n, one in enumerate(stream, first)]


def run_of(text: str, attributes: dict[str, Any] | None = None) -> list[AgentOutput]:
    """Return the outputs of a program for one event."""
    (outputs,) = fed(engine_of(text), attributes or {})
    return outputs


def value_of(expression: str, attributes: dict[str, Any] | None = None) -> Any:
    """Return the value of an expression as JSON."""
    (output,) = run_of(f"(announce 'value (object 'is {expression}))", attributes)
    assert isinstance(output, Announce), output
    return output.event.attributes["is"]


def fault_of(text: str, attributes: dict[str, Any] | None = None) -> Fault:
    """Return the fault of a program for one event."""
    (output,) = run_of(text, attributes)
    assert isinstance(output, ProgramFailed | ProgramSuspended), output
    return output.fault


def announced(outputs: list[AgentOutput]) -> list[tuple[str, dict[str, Any]]]:
    return [(one.event.type, one.event.attributes) for one in outputs if isinstance(one, Announce)]


def notified(outputs: list[AgentOutput]) -> list[list[int]]:
    """Return the numbers of the events of each notification."""
    return [
        [bound.sequence for bound in one.bindings["events"]]  # type: ignore[union-attr]
        for one in outputs
        if isinstance(one, Notify)
    ]
