"""A filter that nobody has registered: what registering it would say, without doing so. Plain."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from eventhub.errors import EventHubError, UnknownField
from registrations.filters import FILTER_FIELDS, PAIRS, Filter, parse_filter, warnings_of
from registrations.lang.ast import Node
from registrations.lang.languages import parse
from registrations.lang.normal import normal
from registrations.lang.printed import printed
from registrations.match.cost import cost_of
from registrations.match.spec import specs_of_form


class Draft(NamedTuple):
    """A filter as it was read. `variable`: the name that a READY filter binds."""

    filter: Filter
    node: Node
    variable: str | None


def parse_draft(fields: Mapping[str, Any]) -> Draft:
    """The filter among the fields of a body, as a registration has them. Raises what
    `parse_filter` raises.
    """
    filter = parse_filter({name: fields[name] for name in FILTER_FIELDS if name in fields})
    return draft_of(filter)


def draft_of(filter: Filter) -> Draft:
    """Of a filter that was read before."""
    found = parse(filter.language, filter.source)
    return Draft(filter, found.node, found.variable)


def checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What registering would answer of the filter, or the mistake in it as a problem document; a
    mistake is an answer here, no refusal.
    """
    try:
        draft = parse_draft(fields)
    except EventHubError as error:
        return {**_NOTHING, "language": _named(fields), "mistake": error.problem()}
    form = normal(draft.node)
    return {
        "language": draft.filter.language,
        "predicate": printed(draft.node),
        "variable": draft.variable,
        "warnings": warnings_of(form),
        "cost": cost_of(specs_of_form(form)).json(),
        "mistake": None,
    }


def require_known(fields: Mapping[str, Any], known: frozenset[str]) -> None:
    """UnknownField for the first that is not."""
    for name in fields:
        if name not in known:
            raise UnknownField(field=name[:100])


_NOTHING: dict[str, Any] = {"predicate": None, "variable": None, "warnings": [], "cost": None}


def _named(fields: Mapping[str, Any]) -> str | None:
    language = fields.get("language", PAIRS)
    return language if isinstance(language, str) else None
