"""The program of a CESQL expression. Plain module."""

from functools import cache

from eventhub.base import limits
from registrations.filters.ast import Path
from registrations.filters.cesql.attributes import (
    REQUIRED,
    attribute,
    name_of,
    path_of_attribute,
)
from registrations.filters.cesql.evaluation import evaluate
from registrations.filters.cesql.parser import parse_terms
from registrations.filters.cesql.terms import attributes_in, function_of, required_by, type_of_term
from registrations.filters.event_values import EventValues
from registrations.filters.program import Program
from registrations.filters.sexpr import syntax_error
from registrations.filters.terms import PROGRAM_DEPTH_MAX, Term
from registrations.filters.work import Result, Work

_OPERATORS = frozenset(("literal", "attribute", "pattern", "negative", "NOT", "AND", "OR", "XOR",
                        "LIKE", "IN", "EXISTS", "=", "!=", "<", "<=", ">", ">=",
                        *"+-*/%"))  # fmt: skip


def cesql_program(text: str) -> Program:
    """Parse an expression as a filter. Raises FilterSyntax, FilterTooLarge."""
    term = checked_term(text, PROGRAM_DEPTH_MAX)
    paths = dict.fromkeys(_path(name) for name in attributes_in(term))
    required = dict.fromkeys(
        _path(name) for name in required_by(term) if name_of(name) not in _ALWAYS
    )
    return Program(
        tuple(path for path in required if path),
        tuple(path for path in paths if path),
        term.size(),
        term.size(),
        lambda values, work: _run(term, values, work),
    )


def checked_term(text: str, depth_max: int = limits.FILTER_DEPTH_MAX) -> Term:
    """Parse an expression and check that it may be a filter: its functions exist, and its value is
    true or false. Raises FilterSyntax with the position, FilterTooLarge.
    """
    term = parse_terms(text, depth_max)
    _check(term)
    if type_of_term(term) not in ("boolean", None):
        raise syntax_error("A filter is true or false; compare this value with one.", term.position)
    return term


_ALWAYS = frozenset((*REQUIRED, "specversion"))


def _path(name: str) -> Path | None:
    return path_of_attribute(name_of(name))


def _run(term: Term, values: EventValues, work: Work) -> Result:
    once = cache(lambda name: attribute(name_of(name), values))  # some are encoded as JSON
    found, error = evaluate(term, once, work)
    if error is not None:
        return Result(False, f"it has an error: {error.message}")
    if not isinstance(found, bool):
        return Result(False, "its value is neither true nor false")
    return Result(found, "it is true" if found else "it is false")


def _check(term: Term) -> None:
    if term.op not in _OPERATORS and function_of(term.op, len(term.args)) is None:
        raise syntax_error(f"CESQL has no function {_called(term)}.", term.position)
    if term.op == "attribute" and name_of(term.value) == "data":
        raise syntax_error(
            "CESQL cannot read the data of an event; the other languages can, as in "
            "(> data.total 50).",
            term.position,
        )
    for arg in term.args:
        _check(arg)


def _called(term: Term) -> str:
    count = len(term.args)
    return f"{term.op[:100]} of {count} value{'' if count == 1 else 's'}"
