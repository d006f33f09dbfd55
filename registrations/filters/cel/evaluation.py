"""The evaluation of CEL terms, within bounds. Plain module."""

from collections.abc import Callable
from typing import Any

from eventhub.base import limits
from registrations.filters.cel.fields import ATTRIBUTES, ENV, MAPS, path_of_term
from registrations.filters.cel.operations import (
    OF_ANY,
    OF_TEXTS,
    CelError,
    at,
    calculated,
    called,
    contained,
    equal,
    is_number,
    kind_of_value,
    ordered,
    within,
)
from registrations.filters.cel.parser import MACROS
from registrations.filters.event_values import EventValues
from registrations.filters.terms import Term
from registrations.filters.values import MISSING

_CHARS_PER_STEP = 4_096  # compared or copied in about the time of one step
_Variables = dict[str, Any]


def evaluate_cel(term: Term, values: EventValues) -> Any:
    """Evaluate an expression for an event. Raises CelError."""
    return _Evaluation(values).value(term, {})


class _Evaluation:
    """One evaluation, with the work that it may still do."""

    def __init__(self, values: EventValues) -> None:
        self._values = values
        self._steps = limits.EXPRESSION_STEPS_MAX

    def value(self, term: Term, variables: _Variables) -> Any:
        self._work(1)
        op = term.op
        if op == "literal":
            return term.value
        if op == "variable":
            return variables[term.value]
        if op in ("name", "field", "index"):
            return self._field(term, variables)
        if op in ("&&", "||"):
            return self._joined(term, variables)
        if op == "?:":
            chosen = 1 if self._truth(term.args[0], variables) else 2
            return self.value(term.args[chosen], variables)
        if op in MACROS:
            return self._macro(term, variables)
        if op == "has":
            return self._has(term.args[0], variables)
        args = [self.value(arg, variables) for arg in term.args]
        return args if op == "list" else self._operation(op, args)

    def _operation(self, op: str, args: list[Any]) -> Any:
        self._work(sum(map(_weight, args)) // _CHARS_PER_STEP)
        if op in ("==", "!="):
            return equal(*args) == (op == "==")
        if op in ("<", "<=", ">", ">="):
            return ordered(op, *args)
        if op == "!":
            return not _truth_of(args[0])
        if op == "negative":
            return _negative(args[0])
        if op == "in":
            return contained(*args)
        if op in OF_ANY or op in OF_TEXTS:
            return called(op, args)
        found = calculated(op, *args)
        if isinstance(found, str | list) and len(found) > limits.EXPRESSION_CHARS_MAX:
            raise CelError("the result is too long")
        return found

    def _field(self, term: Term, variables: _Variables) -> Any:
        path = path_of_term(term)
        if path is not None:
            found = self._values.value(path)
            if found is MISSING:
                raise CelError(f"{path.name} is missing")
            return found
        if term.op == "name":
            return self._map(term.value)
        of = self.value(term.args[0], variables)
        key = term.value if term.op == "field" else self.value(term.args[1], variables)
        return at(of, key)

    def _map(self, name: str) -> Any:
        event = self._values.event
        if name == ATTRIBUTES:
            return event.attributes
        if name == ENV:
            return event.environment or {}
        raise CelError(f"{name} has fields only")

    def _has(self, term: Term, variables: _Variables) -> bool:
        """Return whether a field exists. What it is a field of has to exist."""
        path = path_of_term(term)
        of = term.args[0] if term.args else None
        if of is not None and not (of.op == "name" and of.value in MAPS):
            self.value(of, variables)
        if path is not None:
            return self._values.value(path) is not MISSING
        try:
            self._field(term, variables)
        except CelError:
            return False
        return True

    def _joined(self, term: Term, variables: _Variables) -> bool:
        """Evaluate `&&` or `||`: a part that decides outweighs errors of the others."""
        decisive = term.op == "||"
        failed: CelError | None = None
        for arg in term.args:
            try:
                if self._truth(arg, variables) == decisive:
                    return decisive
            except CelError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return not decisive

    def _macro(self, term: Term, variables: _Variables) -> Any:
        several = self.value(term.args[0], variables)
        if not isinstance(several, list | tuple | dict):
            raise CelError(f"{term.op} takes a list, not {kind_of_value(several)}")
        return _MACROS[term.op](
            list(several), lambda one: self.value(term.args[1], {**variables, term.value: one})
        )

    def _truth(self, term: Term, variables: _Variables) -> bool:
        return _truth_of(self.value(term, variables))

    def _work(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise CelError("it takes too much work")


def _truth_of(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise CelError(f"{kind_of_value(value)} is neither true nor false")


def _negative(value: Any) -> Any:
    if not is_number(value):
        raise CelError(f"- does not take {kind_of_value(value)}")
    return within(-value) if isinstance(value, int) else -value


def _weight(value: Any) -> int:
    """Return the characters of a text, or of what a list has some hundred times as much."""
    if isinstance(value, str):
        return len(value)
    return 256 * len(value) if isinstance(value, list | tuple | dict) else 0


def _decided(several: list[Any], test: Callable[[Any], Any], decisive: bool) -> bool:
    """Evaluate `exists` or `all`: a member that decides outweighs errors of the others."""
    failed: CelError | None = None
    for one in several:
        try:
            if _truth_of(test(one)) == decisive:
                return decisive
        except CelError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not decisive


_MACROS: dict[str, Callable[[list[Any], Callable[[Any], Any]], Any]] = {
    "exists": lambda several, test: _decided(several, test, True),
    "all": lambda several, test: _decided(several, test, False),
    "exists_one": lambda several, test: sum(_truth_of(test(one)) for one in several) == 1,
    "filter": lambda several, test: [one for one in several if _truth_of(test(one))],
    "map": lambda several, test: [test(one) for one in several],
}
