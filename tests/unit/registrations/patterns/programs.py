"""Random patterns and events for the comparison of the engine with the oracle."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.pattern_engine import (
    Announce,
    Dropped,
    Ended,
    EventPosition,
    Match,
    NewEvent,
    Notify,
)
from tests.unit.registrations.patterns.oracle import New, Output

TYPES = "ABC"
SEGMENT = "018f4e5c-0000-7000-8000-000000000000"
SECOND = 1_000_000


class Timed(NamedTuple):
    """An event and its time in seconds."""

    time: int
    event: Event


@st.composite
def events(draw: st.DrawFn) -> list[Timed]:
    """Draw events; their times may go back."""
    found, time = [], 10
    for _ in range(draw(st.integers(4, 16))):
        time += draw(st.sampled_from((0, 0, 0, 1, 1, 2, 5, -1)))
        attributes: dict[str, Any] = {"u": draw(st.integers(1, 2)), "n": draw(st.integers(0, 3))}
        if draw(st.integers(0, 9)) == 0:
            del attributes[draw(st.sampled_from(("u", "n")))]
        found.append(Timed(time, Event("", draw(st.sampled_from(TYPES)), attributes)))
    return found


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """Draw the text of a pattern, which the parser may refuse."""
    names = iter(f"v{number}" for number in range(100))
    text, _ = _part(draw, names, draw(st.integers(0, 3)))
    if draw(st.booleans()):
        text += " per $u"
    if draw(st.booleans()):
        text += f" within {draw(st.integers(1, 6))}s"
    text += f" last {draw(st.integers(4, 9))}"
    return f"{text} once" if draw(st.integers(0, 9)) == 0 else text


Variables = list[tuple[str, bool]]  # each with whether it is a sequence


def _part(draw: st.DrawFn, names: Any, depth: int) -> tuple[str, Variables]:
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        text, variables = _element(draw, names)
    else:
        operator = draw(st.sampled_from(("&&", "||", ";", ";", "butnot")))
        left, variables = _part(draw, names, depth - 1)
        right, others = _part(draw, names, depth - 1)
        if operator != "butnot":
            variables = variables + others
        left_row = left if draw(st.booleans()) and operator != "butnot" else f"({left})"
        text = f"({left_row} {operator} ({right}))"
    if draw(st.integers(0, 3)) == 0:
        text = f"({text} where {_condition(draw, variables)})"
    if draw(st.integers(0, 3)) == 0:
        text, variables = _with_actions(draw, names, text, variables)
    return text, variables


def _element(draw: st.DrawFn, names: Any) -> tuple[str, Variables]:
    type = draw(st.sampled_from(TYPES))
    condition = f" | $n > {draw(st.integers(0, 2))}" if draw(st.integers(0, 3)) == 0 else ""
    name = next(names)
    if draw(st.integers(0, 2)):
        return f"{{{name}: {type}{condition}}}", [(name, False)]
    least = draw(st.integers(0, 3))
    most = draw(st.sampled_from((least, least + 1, least + 2, "*")))
    return f"{{{name}[{least}..{most}]: {type}{condition}}}", [(name, True)]


def _condition(draw: st.DrawFn, variables: Variables) -> str:
    single = [name for name, is_sequence in variables if not is_sequence]
    name, is_sequence = draw(st.sampled_from(variables))
    function = draw(st.sampled_from(("sum", "span", "min", "max", "count", "distinct", "avg")))
    tests = [f"{function}({name}.n) {draw(st.sampled_from(('<', '>', '>=')))} 1", f"exist {name}"]
    if not is_sequence:
        tests += [f"{name}.n <= {draw(st.integers(0, 3))}", f"not ({name}.n == 1)"]
    if len(single) > 1:
        tests += [f"{single[0]}.u == {single[-1]}.u", f"{single[-1]}.n > {single[0]}.n"]
    return draw(st.sampled_from(tests))


def _with_actions(
    draw: st.DrawFn, names: Any, text: str, variables: Variables
) -> tuple[str, Variables]:
    name, _ = draw(st.sampled_from(variables))
    chosen = draw(st.integers(0, 3))
    if chosen == 0:
        new = next(names)
        text = f"({text} do assign {new} = S{{n = count({name}), f = first({name}.n)}})"
        return text, [*variables, (new, False)]
    actions = (
        f"notify({name}) to 'x'",
        f"increment c by count({name}), announce(T, {{c = counter(c), m = max({name}.n)}})",
        "notify()",
    )
    return f"({text} do {actions[chosen - 1]})", variables


def position_of(order: int, timed: Timed) -> EventPosition:
    return EventPosition(order, 1, SEGMENT, order, timed.time * SECOND)


def outputs_of(engine: ReadyEngine, order: int, timed: Timed) -> list[Output]:
    """Feed an event, and return the outputs as the oracle states them."""
    found = engine.feed(position_of(order, timed), timed.event)
    return [_shown(one) for one in found if not isinstance(one, Ended)]


def _shown(output: Any) -> Output:
    match output:
        case Match():
            return "match", output.position.order, _bindings(output.bindings)
        case Notify():
            return "notify", output.position.order, _bindings(output.bindings), output.target
        case Announce():
            return "announce", output.position.order, _new(output.event), output.stream
        case Dropped():
            return "dropped", output.reason, output.count
    raise TypeError(output)


def _bindings(bindings: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _bound(value)) for name, value in bindings.items())


def _bound(value: Any) -> Any:
    if value and isinstance(value[0], NewEvent):
        return _new(value[0])
    return tuple(one.order for one in value)


def _new(event: NewEvent) -> New:
    return New(event.type, tuple(event.attributes.items()))
