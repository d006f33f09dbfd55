"""The operators and functions of CEL on values: JSON values, of which whole numbers are integers of
64 bits. Plain module.
"""

import re
from collections.abc import Callable
from math import inf, isinf, isnan, nan
from typing import Any

from eventhub.base import limits
from registrations.filters.values import key_of

INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1
_TRUTHS = {
    **dict.fromkeys(("1", "t", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "false", "FALSE", "False"), False),
}
_INTEGER = re.compile(r"-?[0-9]{1,20}")
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[Ii]nf(?:inity)?|NaN)"
)
_PAIRS_PER_STEP = 8  # of members that are prepared to be compared
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_SPACES += "".join(map(chr, range(0x2000, 0x200B)))

Spend = Callable[[int], None]  # takes steps of the work that is left


class CelError(Exception):
    """An error of an evaluation, in words."""


def kind_of_value(value: Any) -> str:
    """Return the name of a value's type."""
    if value is None:
        return "null"
    for kind, name in ((bool, "a boolean"), (int, "an integer"), (float, "a double"),
                       (str, "a text"), (list | tuple, "a list")):  # fmt: skip
        if isinstance(value, kind):
            return name
    return "an object"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any, spend: Spend) -> bool:
    """Return whether two values are equal. Values of different types are not, but numbers are by
    value. A list may be in several others: each time its members are compared, and take steps.
    """
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        spend(1)
        if isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            spend(len(one) // _PAIRS_PER_STEP)
            waiting += zip(one, other, strict=True)
        elif isinstance(one, dict) and isinstance(other, dict):
            spend(len(one) // _PAIRS_PER_STEP)
            if one.keys() != other.keys():
                return False
            waiting += ((value, other[name]) for name, value in one.items())
        elif key_of(one) != key_of(other):
            return False
    return True


def ordered(op: str, one: Any, other: Any) -> bool:
    """Compare two numbers, two texts or two booleans."""
    alike = is_number(one) and is_number(other)
    alike = alike or (isinstance(one, str) and isinstance(other, str))
    if not alike and not (isinstance(one, bool) and isinstance(other, bool)):
        raise CelError(f"{kind_of_value(one)} and {kind_of_value(other)} have no order")
    return _ORDERS[op](one, other)


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


def calculated(op: str, one: Any, other: Any) -> Any:
    """Calculate with two numbers, or join two texts or two lists. An integer and a double give a
    double.
    """
    if op == "+" and isinstance(one, str) and isinstance(other, str):
        return one + other
    if op == "+" and isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return [*one, *other]
    if not is_number(one) or not is_number(other):
        raise CelError(f"{op} does not take {kind_of_value(one)} and {kind_of_value(other)}")
    if isinstance(one, int) and isinstance(other, int):
        return within(_of_integers(op, one, other))
    return _of_doubles(op, one, other)


def within(number: int) -> int:
    """Return an integer of 64 bits."""
    if not INT_MIN <= number <= INT_MAX:
        raise CelError("the result has more than 64 bits")
    return number


def _of_integers(op: str, one: int, other: int) -> int:
    if op == "+":
        return one + other
    if op == "-":
        return one - other
    if op == "*":
        return one * other
    if not other:
        raise CelError("a division by zero")
    whole = abs(one) // abs(other)
    whole = whole if (one < 0) == (other < 0) else -whole
    return whole if op == "/" else one - whole * other


def _of_doubles(op: str, one: float, other: float) -> float:
    try:
        left, right = float(one), float(other)
        if op == "+":
            return left + right
        if op == "-":
            return left - right
        if op == "*":
            return left * right
    except OverflowError:
        raise CelError("a number is too large") from None
    if op == "%":
        raise CelError("% takes integers")
    if right:
        return left / right
    if not left or isnan(left):
        return nan
    return inf if (left > 0) == (str(right)[0] != "-") else -inf


def contained(value: Any, several: Any, spend: Spend) -> bool:
    """Return whether a list has a value, or an object a name."""
    if isinstance(several, dict):
        return isinstance(value, str) and value in several
    if isinstance(several, list | tuple):
        return any(equal(value, one, spend) for one in several)
    raise CelError(f"`in` takes a list or an object, not {kind_of_value(several)}")


def at(of: Any, key: Any) -> Any:
    """Return a member of a list or the field of an object."""
    if isinstance(of, dict):
        if not isinstance(key, str) or key not in of:
            raise CelError(f"there is no field {str(key)[: limits.EXPLAIN_CHARS_MAX]}")
        return of[key]
    if not isinstance(of, list | tuple) or not is_number(key):
        raise CelError(f"{kind_of_value(of)} has no fields")
    if not 0 <= key < len(of) or key != int(key):
        raise CelError(f"there is no member {key}")
    return of[int(key)]


def _size(value: Any) -> int:
    if isinstance(value, str | list | tuple | dict):
        return len(value)
    raise CelError(f"size does not take {kind_of_value(value)}")


def _int(value: Any) -> int:
    if isinstance(value, bool):
        raise CelError("int does not take a boolean")
    if isinstance(value, int):
        return within(value)
    if isinstance(value, float) and INT_MIN < value < INT_MAX:
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return within(int(value))
    raise CelError(f"int does not take {_shown(value)}")


def _double(value: Any) -> float:
    if isinstance(value, str):
        found = float(value) if _DOUBLE.fullmatch(value) else _no_double(value)
        return _no_double(value) if isinf(found) and value[-1].isdigit() else found
    try:
        return float(value) if is_number(value) else _no_double(value)
    except OverflowError:
        return _no_double(value)


def _no_double(value: Any) -> float:
    raise CelError(f"double does not take {_shown(value)}")


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value)
    raise CelError(f"string does not take {kind_of_value(value)}")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUTHS:
        return _TRUTHS[value]
    raise CelError(f"bool does not take {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[: limits.EXPLAIN_CHARS_MAX])
    return kind_of_value(value)


def _lower_ascii(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _upper_ascii(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").upper().decode("utf-8", "surrogatepass")


OF_ANY: dict[str, Callable[[Any], Any]] = {
    "size": _size,
    "int": _int,
    "double": _double,
    "string": _string,
    "bool": _bool,
    "dyn": lambda value: value,
}
OF_TEXTS: dict[str, Callable[..., Any]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
    "lowerAscii": _lower_ascii,
    "upperAscii": _upper_ascii,
    "trim": lambda text: text.strip(_SPACES),
}


def called(name: str, args: list[Any]) -> Any:
    """Return the result of a function."""
    if name in OF_ANY:
        return OF_ANY[name](args[0])
    for arg in args:
        if not isinstance(arg, str):
            raise CelError(f"{name} does not take {kind_of_value(arg)}")
    return OF_TEXTS[name](*args)
