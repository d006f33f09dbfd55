"""The evaluation of CESQL terms, within bounds. An error ends it ("fail fast", 4.1 of the
specification). Plain module.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from eventhub.base import limits
from registrations.filters.cesql.like import LikePart, fits_parts, searched_chars
from registrations.filters.cesql.terms import (
    INT_MAX,
    INT_MIN,
    MISSING_FUNCTION,
    ZERO,
    CesqlError,
    CesqlType,
    CesqlValue,
    function_of,
    type_of,
    type_of_term,
)
from registrations.filters.terms import Term
from registrations.filters.values import MISSING
from registrations.filters.work import Work

Lookup = Callable[[str], Any]  # the value of an attribute, or MISSING
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_CHARS_PER_STEP = 4_096  # compared or copied in about the time of one step


class CesqlOutcome(NamedTuple):
    """A value, and the error of its evaluation, if there was one."""

    value: CesqlValue
    error: CesqlError | None


def evaluate(term: Term, lookup: Lookup, work: Work | None = None) -> CesqlOutcome:
    """Evaluate an expression. After an error the value is that of the failed function if it is the
    whole expression, or the zero value of the expression's type. Raises TooMuchWork.
    """
    try:
        return CesqlOutcome(_Run(lookup, work or Work()).value(term), None)
    except CesqlError as error:
        own = error.term is term and error.value is not None
        return CesqlOutcome(error.value if own else ZERO[type_of_term(term)], error)  # type: ignore[arg-type]


class _Run:
    """One evaluation, with the work that it may still do."""

    def __init__(self, lookup: Lookup, work: Work) -> None:
        self._lookup = lookup
        self._work = work.spend

    def value(self, term: Term) -> CesqlValue:
        self._work(1)
        op, args = term.op, term.args
        if op == "literal":
            known: CesqlValue = term.value
            return known
        if op == "attribute":
            return self._attribute(term.value)
        if op in ("AND", "OR"):
            return self._joined(args, last=op == "OR")
        if op == "NOT":
            return not self._truth(args[0])
        if op == "EXISTS":
            return self._lookup(args[0].value) is not MISSING
        if op == "LIKE":
            return self._is_like(self._text(args[0]), args[1].value)
        if op == "IN":
            return self._is_in(args)
        return self._operation(term)

    def _operation(self, term: Term) -> CesqlValue:
        op, args = term.op, term.args
        if op in ("=", "!="):
            left, right = self.value(args[0]), self.value(args[1])
            return (_cast(left, type_of(right)) == right) == (op == "=")
        if op in _ORDERS:
            return _ORDERS[op](self._integer(args[0]), self._integer(args[1]))
        if op == "XOR":
            return self._truth(args[0]) != self._truth(args[1])
        if op == "negative":
            return _within(-self._integer(args[0]))
        if op in _ARITHMETIC:
            return _within(_ARITHMETIC[op](self._integer(args[0]), self._integer(args[1])))
        return self._called(term)

    def _called(self, term: Term) -> CesqlValue:
        found = function_of(term.op, len(term.args))
        if found is None:
            raise CesqlError(MISSING_FUNCTION, f"there is no {term.op} of {len(term.args)} values")
        kinds = [*found.takes, *[found.rest] * (len(term.args) - len(found.takes))]
        values = [
            _cast(self.value(arg), kind or "text")
            for arg, kind in zip(term.args, kinds, strict=True)
        ]
        chars = sum(len(value) for value in values if isinstance(value, str))
        if chars > limits.EXPRESSION_CHARS_MAX:
            raise CesqlError("functionEvaluation", f"the texts of {term.op} are too long")
        self._work(chars // _CHARS_PER_STEP)
        try:
            return found.call(*values)
        except CesqlError as error:
            error.term = term
            raise

    def _attribute(self, name: str) -> CesqlValue:
        value = self._lookup(name)
        if value is MISSING:
            raise CesqlError("missingAttribute", f"{name} is missing")
        if isinstance(value, float):
            return int(value) if value.is_integer() else repr(value)
        if not isinstance(value, str | int):
            raise CesqlError("missingAttribute", f"{name} is no text, number or boolean")
        return value

    def _joined(self, args: tuple[Term, ...], *, last: bool) -> bool:
        """Evaluate until one is the decisive result."""
        return any(self._truth(arg) for arg in args) if last else all(map(self._truth, args))

    def _is_in(self, args: tuple[Term, ...]) -> bool:
        """Test whether one of the further values equals the first, cast to its type."""
        one = self.value(args[0])
        others = [self.value(arg) for arg in args[1:]]
        return any(_is(other, one) for other in others)

    def _is_like(self, text: str, parts: tuple[LikePart, ...]) -> bool:
        self._work(searched_chars(parts) * len(text) // _CHARS_PER_STEP)
        return fits_parts(parts, text, self._work)

    def _truth(self, term: Term) -> bool:
        return bool(_cast(self.value(term), "boolean"))

    def _integer(self, term: Term) -> int:
        return int(_cast(self.value(term), "integer"))

    def _text(self, term: Term) -> str:
        return str(_cast(self.value(term), "text"))


def _cast(value: CesqlValue, kind: CesqlType) -> CesqlValue:
    """Convert a value to a type (3.7). Raises CesqlError."""
    if kind == "text":
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)
    if not isinstance(value, str):
        return bool(value) if kind == "boolean" else int(value)
    if kind == "boolean":
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise CesqlError("cast", f"{_short(value)} is no boolean")
    number = int(value) if _INTEGER.fullmatch(value) else INT_MAX + 1
    if not INT_MIN <= number <= INT_MAX:
        raise CesqlError("cast", f"{_short(value)} is no integer of 32 bits")
    return number


def cast_or_none(value: CesqlValue, kind: CesqlType) -> CesqlValue | None:
    """Convert a value to a type; None if it cannot be."""
    try:
        return _cast(value, kind)
    except CesqlError:
        return None


def _is(other: CesqlValue, one: CesqlValue) -> bool:
    return cast_or_none(other, type_of(one)) == one


def _short(text: str) -> str:
    return repr(text[: limits.EXPLAIN_CHARS_MAX])


def _within(number: int) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise CesqlError("math", "the result has more than 32 bits")
    return number


def _divided(left: int, right: int) -> int:
    if not right:
        raise CesqlError("math", "a division by zero")
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int:
    return left - right * _divided(left, right)


_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divided,
    "%": _remainder,
}
