"""The values that conditions and actions of a pattern read of its variables: components of bound
events, and functions of sets of events (RDY-28, RDY-29, RDY-31). Plain module.

They are brought together as the attributes of one event, named as the pattern writes them, so that
the rules of the filter languages hold for them.
"""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filters.ast import Arithmetic, Const, Node, Operand, Path
from registrations.filters.evaluate import holds
from registrations.filters.event_values import EventValues
from registrations.filters.paths import all_paths, paths_of
from registrations.filters.values import MISSING, joined, key_of, members, number_of, value_at
from registrations.patterns.ast import SetFunction, VariablePath
from registrations.patterns.pattern_engine import EventPosition, NewEvent

Number = int | float


class BoundEvent:
    """An event of the log that elements took. `values`: of the components that the pattern reads.

    `time_us`: of its append, or that of an event before it if that is later. `number`: among the
    events of its partition. `mask`: the elements that took it, as bits.
    """

    __slots__ = ("mask", "number", "order", "position", "size", "time_us", "values")

    def __init__(
        self,
        position: EventPosition,
        time_us: int,
        number: int,
        mask: int,
        values: dict[Path, Any],
    ) -> None:
        self.position = position
        self.order = position.order
        self.time_us = time_us
        self.number = number
        self.mask = mask
        self.values = values
        self.size = 400 + sum(map(size_of, values.values()))  # the estimated memory, in bytes


BoundValue = BoundEvent | tuple[BoundEvent, ...] | NewEvent
Bindings = Mapping[str, BoundValue]
Counters = Mapping[str, Number]
_NO_COUNTERS: Counters = {}


class ReadValue(NamedTuple):
    """What an expression reads: its text, and where the value comes from."""

    name: str
    variable: str
    component: Path | None
    function: SetFunction | None


def reads_of(part: Node | Operand) -> tuple[ReadValue, ...]:
    """Return what a condition or a value reads, each once."""
    is_operand = isinstance(part, Path | Const | Arithmetic)
    paths = paths_of(part) if is_operand else all_paths(part)  # type: ignore[arg-type]
    found = (path for path in paths if isinstance(path, VariablePath))
    return tuple(
        dict.fromkeys(
            ReadValue(path.name, path.variable, path.component, path.function) for path in found
        )
    )


class PatternCondition:
    """A condition over variables."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.reads = reads_of(node)

    def holds(self, bindings: Bindings) -> bool:
        """Return whether the condition holds; a comparison with an unbound variable is false."""
        return holds(self._node, _event(self.reads, bindings))


class PatternValue:
    """A value over variables."""

    def __init__(self, operand: Operand) -> None:
        self._operand = operand
        self.reads = reads_of(operand)

    def of(self, bindings: Bindings, counters: Counters = _NO_COUNTERS) -> Any:
        """Return the value, or MISSING."""
        operand = self._operand
        if isinstance(operand, Const):
            return operand.value
        event = _event(self.reads, bindings, counters)
        if isinstance(operand, Path):
            return event.attributes.get(operand.name, MISSING)
        found = [*EventValues(event).of(operand)]
        return MISSING if not found else found[0] if len(found) == 1 else found


def size_of(value: Any) -> int:
    """Return the estimated memory of a JSON value, in bytes."""
    if isinstance(value, str):
        return 60 + len(value)
    if isinstance(value, dict):
        return 200 + sum(size_of(key) + size_of(member) for key, member in value.items())
    if isinstance(value, list | tuple):
        return 100 + sum(map(size_of, value))
    return 40


def _event(
    reads: Iterable[ReadValue], bindings: Bindings, counters: Counters = _NO_COUNTERS
) -> Event:
    """Return an event whose attributes are the values that are there."""
    found: dict[str, Any] = {}
    for read in reads:
        value = (
            counters.get(read.variable, 0) if read.function == "counter" else _of(read, bindings)
        )
        if value is not MISSING:
            found[read.name] = value
    return Event("", "", found)


def _of(read: ReadValue, bindings: Bindings) -> Any:
    bound = bindings.get(read.variable, ())
    events = bound if isinstance(bound, tuple) and not isinstance(bound, NewEvent) else (bound,)
    if read.component is None:
        return len(events) if read.function == "count" else True if events else MISSING
    component = read.component
    values = [
        value for value in (_inside(one, component) for one in events) if value is not MISSING
    ]
    if read.function is not None:
        return _in_range(_FUNCTIONS[read.function](values))
    if isinstance(bound, BoundEvent | NewEvent):
        return values[0] if values else MISSING
    return joined(values) if values else MISSING


def _inside(event: BoundEvent | NewEvent, component: Path) -> Any:
    if isinstance(event, BoundEvent):
        return event.values.get(component, MISSING)
    if component.space == "attributes":
        return value_at(event.attributes, component.name)
    if component.space == "envelope" and component.name in ("domain", "type"):
        return getattr(event, component.name) or MISSING
    return MISSING


def _in_range(value: Any) -> Any:
    """Return a result that an event can have as a value, or MISSING."""
    if isinstance(value, float) and not isfinite(value):
        return MISSING
    if isinstance(value, int) and not limits.INTEGER_MIN <= value <= limits.INTEGER_MAX:
        return MISSING
    return value


def _numbers(values: list[Any]) -> list[Number]:
    found = (number_of(member) for value in values for member in members(value))
    return [number for number in found if number is not None]


def _of_numbers(function: Callable[[list[Number]], Any]) -> Callable[[list[Any]], Any]:
    def of(values: list[Any]) -> Any:
        numbers = _numbers(values)
        return function(numbers) if numbers else MISSING

    return of


_FUNCTIONS: dict[SetFunction, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": lambda values: sum(_numbers(values)),
    "min": _of_numbers(min),
    "max": _of_numbers(max),
    "avg": _of_numbers(lambda numbers: sum(numbers) / len(numbers)),
    "span": _of_numbers(lambda numbers: max(numbers) - min(numbers)),
    "first": lambda values: values[0] if values else MISSING,
    "last": lambda values: values[-1] if values else MISSING,
    "distinct": lambda values: len({key_of(one) for value in values for one in members(value)}),
}
