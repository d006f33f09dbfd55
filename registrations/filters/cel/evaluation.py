"""The evaluation of CEL terms, within bounds. Plain module."""

from collections.abc import Callable, Iterable
from typing import Any

from eventhub.base import limits
from registrations.filters.ast import Path
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
from registrations.filters.work import Work

_CHARS_PER_STEP = 4_096  # compared or copied in about the time of one step ...
_CHARS_READ = 256  # ... and those that a function reads ...
_CHARS_TRIMMED = 64  # ... or trims
_Variables = dict[str, Any]
_Paths = dict[Term, Path | None]


def evaluate_cel(
    term: Term, values: EventValues, work: Work | None = None, paths: _Paths | None = None
) -> Any:
    """Evaluate an expression for an event. `paths`: of its fields, which the first evaluation
    finds. Raises CelError, TooMuchWork.
    """
    found = _Evaluation(values, Work() if work is None else work, {} if paths is None else paths)
    return found.value(term, {})


class _Evaluation:
    """One evaluation, with the work that it may still do."""

    def __init__(self, values: EventValues, work: Work, paths: _Paths) -> None:
        self._values = values
        self._spend = work.spend
        self._paths = paths

    def value(self, term: Term, variables: _Variables) -> Any:
        self._spend(1)
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
        self._spend(sum(map(_weight, args)) // _CHARS_PER_STEP)
        if op in ("==", "!="):
            return equal(args[0], args[1], self._spend) == (op == "==")
        if op in ("<", "<=", ">", ">="):
            return ordered(op, *args)
        if op == "!":
            return not _truth_of(args[0])
        if op == "negative":
            return _negative(args[0])
        if op == "in":
            return contained(args[0], args[1], self._spend)
        if op in OF_ANY or op in OF_TEXTS:
            chars = sum(len(arg) for arg in args if isinstance(arg, str))
            self._spend(chars // (_CHARS_TRIMMED if op == "trim" else _CHARS_READ))
            return called(op, args)
        found = calculated(op, *args)
        if isinstance(found, str | list) and len(found) > limits.EXPRESSION_CHARS_MAX:
            raise CelError("the result is too long")
        return found

    def _field(self, term: Term, variables: _Variables) -> Any:
        path = self._path(term)
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

    def _path(self, term: Term) -> Path | None:
        if term not in self._paths:
            self._paths[term] = path_of_term(term)
        return self._paths[term]

    def _map(self, name: str) -> Any:
        event = self._values.event
        if name == ATTRIBUTES:
            return event.attributes
        if name == ENV:
            return event.environment or {}
        raise CelError(f"{name} has fields only")

    def _has(self, term: Term, variables: _Variables) -> bool:
        """Return whether a field exists. What it is a field of has to exist."""
        path = self._path(term)
        if path is not None and self._values.value(path) is not MISSING:
            return True
        of = term.args[0] if term.args else None
        if of is not None and not (of.op == "name" and of.value in MAPS):
            self.value(of, variables)
        if path is not None:
            return False
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
            several, lambda one: self.value(term.args[1], {**variables, term.value: one})
        )

    def _truth(self, term: Term, variables: _Variables) -> bool:
        return _truth_of(self.value(term, variables))


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


def _decided(several: Iterable[Any], test: Callable[[Any], Any], decisive: bool) -> bool:
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


_MACROS: dict[str, Callable[[Iterable[Any], Callable[[Any], Any]], Any]] = {
    "exists": lambda several, test: _decided(several, test, True),
    "all": lambda several, test: _decided(several, test, False),
    "exists_one": lambda several, test: sum(_truth_of(test(one)) for one in several) == 1,
    "filter": lambda several, test: [one for one in several if _truth_of(test(one))],
    "map": lambda several, test: [test(one) for one in several],
}
