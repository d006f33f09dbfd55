"""Drafts: filters that are checked as on registering, without a registration. Plain module."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from eventhub.base.errors import EventHubError, UnknownField
from registrations.filter_source import FILTER_FIELDS, PAIRS, FilterSource, parse_filter
from registrations.filters.ast import Node
from registrations.filters.ready import SimpleExpression, print_ready


class FilterDraft(NamedTuple):
    """A parsed filter. `variable`: the name that a READY filter binds."""

    filter: FilterSource
    node: Node
    variable: str | None


def parse_draft(fields: Mapping[str, Any]) -> FilterDraft:
    """Parse the filter in the fields of a body, as a registration has them. Raises the errors of
    `parse_filter`.
    """
    filter = parse_filter({name: fields[name] for name in FILTER_FIELDS if name in fields})
    parsed = filter.read().parsed
    return FilterDraft(filter, parsed.node, parsed.variable)


def checked(draft: FilterDraft) -> dict[str, Any]:
    """Return the fields with which registering would describe the filter."""
    predicate, warnings, cost, signature = draft.filter.summary()
    return {
        "language": draft.filter.language,
        "predicate": predicate,
        "variable": draft.variable,
        "ready": _in_ready(draft),
        "warnings": warnings,
        "cost": cost.json(),
        "signature": signature,
        "mistake": None,
    }


def mistaken(fields: Mapping[str, Any], error: EventHubError) -> dict[str, Any]:
    """Return the answer of a check of a wrong filter, with the mistake as a problem document."""
    return {**_NOTHING, "language": _named(fields), "mistake": error.problem()}


def require_known(fields: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise UnknownField for the first field that is not known."""
    for name in fields:
        if name not in known:
            raise UnknownField(field=name[:100])


_NOTHING: dict[str, Any] = {
    "predicate": None,
    "variable": None,
    "ready": None,
    "warnings": [],
    "cost": None,
    "signature": [],
}


def _in_ready(draft: FilterDraft) -> str | None:
    """Return the filter in READY's form; None if READY cannot express it (RDY-16)."""
    try:
        return print_ready(SimpleExpression(draft.variable or "", draft.node))
    except ValueError:
        return None


def _named(fields: Mapping[str, Any]) -> str | None:
    language = fields.get("language", PAIRS)
    return language if isinstance(language, str) else None
