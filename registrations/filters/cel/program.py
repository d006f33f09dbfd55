"""The program of a CEL expression. Plain module."""

from eventhub.base import limits
from registrations.filters.ast import Path
from registrations.filters.cel.evaluation import evaluate_cel
from registrations.filters.cel.fields import EVENT, MAPS, path_of_term, paths_in, required_paths
from registrations.filters.cel.operations import OF_TEXTS, CelError, kind_of_value
from registrations.filters.cel.parser import FUNCTIONS, MACROS, parse_cel_terms
from registrations.filters.event_values import EventValues
from registrations.filters.program import Program
from registrations.filters.sexpr import syntax_error
from registrations.filters.terms import PROGRAM_DEPTH_MAX, Term
from registrations.filters.work import Result, Work

_EACH = 16  # members of a list for which a macro evaluates its condition
_WHOLE = 8  # cost of an operation that may read a whole list or a long text
_NO_TRUTH = frozenset((*"+-*/%", "negative", "list", "map", "filter", *FUNCTIONS))
_NO_TRUTH -= {"bool", "dyn", "startsWith", "endsWith", "contains"}


def cel_program(text: str) -> Program:
    """Parse an expression as a filter. Raises FilterSyntax, FilterTooLarge."""
    term = checked_cel(text, PROGRAM_DEPTH_MAX)
    paths: dict[Term, Path | None] = {}
    return Program(
        tuple(dict.fromkeys(required_paths(term))),
        tuple(dict.fromkeys(paths_in(term))),
        term.size(),
        _cost(term),
        lambda values, work: _run(term, values, work, paths),
    )


def checked_cel(text: str, depth_max: int = limits.FILTER_DEPTH_MAX) -> Term:
    """Parse an expression and check that it may be a filter: its fields exist, and its value may be
    true or false. Raises FilterSyntax with the position, FilterTooLarge.
    """
    term = parse_cel_terms(text, depth_max)
    _check(term)
    value = term
    while value.op == "dyn":
        value = value.args[0]
    is_no_truth = value.op == "literal" and not isinstance(value.value, bool)
    if value.op in _NO_TRUTH or is_no_truth:
        raise syntax_error("A filter is true or false; compare this value with one.", term.position)
    return term


def _check(term: Term) -> None:
    if term.op == "name" and term.value == EVENT:
        raise syntax_error("Name a field of the event, as in event.type.", term.position)
    if term.op == "has" and term.args[0].op == "name" and term.args[0].value in MAPS:
        raise syntax_error("has takes a field, as in has(data.total).", term.position)
    if path_of_term(term) is not None and term.op != "name":
        return
    for arg in term.args:
        _check(arg)


def _cost(term: Term) -> int:
    inner = [_cost(arg) for arg in term.args]
    if term.op in MACROS:
        inner[1] *= _EACH
    return 1 + sum(inner) + (_WHOLE if _may_be_long(term) else 0)


def _may_be_long(term: Term) -> bool:
    if term.op in ("==", "!=", "in"):
        return all(arg.op not in ("literal", "list") for arg in term.args[-2:])
    return term.op in OF_TEXTS and not term.op.endswith("With")


def _run(term: Term, values: EventValues, work: Work, paths: dict[Term, Path | None]) -> Result:
    try:
        found = evaluate_cel(term, values, work, paths)
    except CelError as error:
        return Result(False, f"it has an error: {error}")
    if not isinstance(found, bool):
        return Result(False, f"its value is {kind_of_value(found)}")
    return Result(found, "it is true" if found else "it is false")
