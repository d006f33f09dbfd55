"""The functions of numbers, comparisons and times that programs call. Plain module.

Integers have 64 bits as in JSON, others are floating-point numbers; a result beyond is a fault, so
that no number grows.
"""

from collections.abc import Callable
from itertools import combinations, pairwise
from math import floor, isfinite
from operator import add, ge, gt, le, lt, mul, sub
from typing import Any

from eventhub.base import limits
from registrations.agents.errors import RunFault
from registrations.agents.machine import Function, Machine
from registrations.agents.values import Value, equal, parts_of, type_of
from registrations.filters.quantities import quantity_of
from registrations.filters.values import number_of

Number = int | float
_EXPONENT_MAX = 128  # of integers: even 2 has left the range by then


def number(value: Value) -> Number:
    """Return an argument that must be a number. Raises RunFault."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RunFault("wrong_type", f"Expected a number, not a {type_of(value)}.")
    return value


def bounded(value: Any) -> Number:
    """Return a result if it is a number within the range. Raises RunFault."""
    if isinstance(value, int) and limits.INTEGER_MIN <= value <= limits.INTEGER_MAX:
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    raise RunFault("number_out_of_range", "The result is beyond 64 bits, or no number.")


def _folded(operation: Callable[[Any, Any], Any], only: Callable[[Number], Number]) -> Function:
    """Return a function that combines its arguments from left to right; `only`: for one."""

    def function(machine: Machine, arguments: list[Value]) -> Value:
        first, *rest = map(number, arguments)
        if not rest:
            return bounded(only(first))
        for each in rest:
            try:
                first = bounded(operation(first, each))
            except OverflowError as error:
                raise RunFault("number_out_of_range", "The result is too large.") from error
        return first

    return function


def _divide(one: Number, other: Number) -> Number:
    if not other:
        raise RunFault("number_out_of_range", "Division by zero.")
    if isinstance(one, int) and isinstance(other, int) and one % other == 0:
        return one // other
    return one / other


def _modulo(machine: Machine, arguments: list[Value]) -> Value:
    one, other = map(number, arguments)
    if not other:
        raise RunFault("number_out_of_range", "Division by zero.")
    return bounded(one % other)


def _power(machine: Machine, arguments: list[Value]) -> Value:
    base, exponent = map(number, arguments)
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and exponent > _EXPONENT_MAX:
        raise RunFault("number_out_of_range", "The result is beyond 64 bits.")
    if whole and exponent > _EXPONENT_MAX:
        exponent = exponent % 2 + 2  # of 0, 1 and -1 only the parity counts
    try:
        return bounded(base**exponent)
    except (OverflowError, ZeroDivisionError) as error:
        raise RunFault("number_out_of_range", "The result is beyond 64 bits.") from error


def _extreme(choose: Callable[..., Any]) -> Function:
    def function(machine: Machine, arguments: list[Value]) -> Value:
        found: Number = choose(map(number, arguments))
        return found

    return function


def _absolute(machine: Machine, arguments: list[Value]) -> Value:
    return bounded(abs(number(arguments[0])))


def _floor(machine: Machine, arguments: list[Value]) -> Value:
    return bounded(floor(number(arguments[0])))


def _round(machine: Machine, arguments: list[Value]) -> Value:
    value = number(arguments[0])
    return value if isinstance(value, int) else bounded(floor(value + 0.5))


def _number(machine: Machine, arguments: list[Value]) -> Value:
    """Return the number that a text is written as; null if it is none."""
    found = number_of(arguments[0])
    if isinstance(found, int) and not limits.INTEGER_MIN <= found <= limits.INTEGER_MAX:
        return None
    return found


def _equal(machine: Machine, arguments: list[Value]) -> Value:
    machine.work(sum(map(parts_of, arguments)) // 4)
    return all(equal(arguments[0], each) for each in arguments[1:])


def _different(machine: Machine, arguments: list[Value]) -> Value:
    machine.work(sum(map(parts_of, arguments)) * len(arguments) // 4)
    return not any(equal(one, other) for one, other in combinations(arguments, 2))


def _ordered(holds: Callable[[Any, Any], bool]) -> Function:
    """Return a comparison as in temporal patterns: texts written as numbers or times are these."""

    def function(machine: Machine, arguments: list[Value]) -> Value:
        for value in arguments:
            machine.read(len(value) if isinstance(value, str) else 0)
        found = [quantity_of(value) for value in arguments]
        return all(
            one is not None and other is not None and one[0] == other[0] and holds(one[1], other[1])
            for one, other in pairwise(found)
        )

    return function


def _not(machine: Machine, arguments: list[Value]) -> Value:
    return arguments[0] is None or arguments[0] is False


NUMBER_FUNCTIONS: dict[str, tuple[Function, int, int | None]] = {
    "+": (_folded(add, lambda one: one), 1, None),
    "-": (_folded(sub, lambda one: -one), 1, None),
    "*": (_folded(mul, lambda one: one), 1, None),
    "/": (_folded(_divide, lambda one: _divide(1, one)), 1, None),
    "mod": (_modulo, 2, 2),
    "expt": (_power, 2, 2),
    "min": (_extreme(min), 1, None),
    "max": (_extreme(max), 1, None),
    "abs": (_absolute, 1, 1),
    "floor": (_floor, 1, 1),
    "round": (_round, 1, 1),
    "number": (_number, 1, 1),
    "=": (_equal, 2, None),
    "!=": (_different, 2, None),
    "<": (_ordered(lt), 2, None),
    "<=": (_ordered(le), 2, None),
    ">": (_ordered(gt), 2, None),
    ">=": (_ordered(ge), 2, None),
    "not": (_not, 1, 1),
}
