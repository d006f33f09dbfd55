"""The filter languages, and `parse`, which parses any of them (OIF-16). Plain module.

Every language produces a tree within the size limits (bounds.py) that can be printed in predicate
form (printed.py). To add a language, write a parser that returns a tree, and add it to `_ALL` and
`_READERS`; docs/changing.md has the other files.
"""

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from eventhub.base.errors import EventHubError, InvalidField
from registrations.filters import eventbridge, pairs
from registrations.filters.ast import (
    And,
    Compare,
    Const,
    ExpressionLanguage,
    Node,
    Path,
    Space,
    Truth,
)
from registrations.filters.bounds import bounded
from registrations.filters.cel.tree import parse_cel
from registrations.filters.cesql.tree import parse_cesql
from registrations.filters.errors import FilterSyntax, UnknownLanguage
from registrations.filters.predicate import parse_predicate
from registrations.filters.propositional import parse_propositional
from registrations.filters.ready import read_ready


class Language(NamedTuple):
    """A language in the list of languages. `fields`: the top-level names of a JSON language."""

    name: str
    about: str
    example: str | dict[str, Any]
    kind: Literal["text", "json"]
    fields: tuple[str, ...] = ()


class ParsedFilter(NamedTuple):
    """A filter's source, its tree and its predicate form. `variable`: the name that a READY filter
    binds.
    """

    language: str
    source: Any
    node: Node
    predicate: str
    variable: str | None = None


_NodeAndVariable = tuple[Node, str | None]
_ALL = (
    Language(
        "pairs",
        "Fields and the values that they must equal.",
        {"type": "state", "attributes": {"state": "online"}},
        "json",
        pairs.FIELDS,
    ),
    Language(
        "propositional",
        "Attributes that must exist, with any value.",
        "(and state (or node host))",
        "text",
    ),
    Language(
        "predicate",
        "Comparisons of fields and constants with and, or and not. It can express all others.",
        "(and (= state 'online) (> size 9))",
        "text",
    ),
    Language(
        "ready",
        "Types, and an expression in the style of the OMG filter grammar.",
        "Ev1: MyAlarm | $Priority > 5",
        "text",
    ),
    Language(
        "cel",
        "Conditions as one writes them: the Common Expression Language of Kubernetes and Eventarc.",
        'total > 50 && country == "NO"',
        "text",
    ),
    Language(
        "cesql",
        "CloudEvents SQL expressions, with the attributes of CloudEvents.",
        "type LIKE 'order.%' AND total > 50",
        "text",
    ),
    Language(
        "eventbridge",
        "Event patterns of Amazon EventBridge.",
        {"detail-type": ["state"], "detail": {"state": [{"anything-but": "offline"}]}},
        "json",
        eventbridge.FIELDS,
    ),
)
LANGUAGES = {language.name: language for language in _ALL}


def parse(language: str, source: Any) -> ParsedFilter:
    """Parse a filter: a text, or an object for a JSON language.

    Raises UnknownLanguage, FilterSyntax with its position, FilterTooLarge, and for JSON
    InvalidField, UnknownField and others with the field.
    """
    if language not in LANGUAGES:
        raise UnknownLanguage(f"The filter languages are {', '.join(LANGUAGES)}.")
    _check_kind(LANGUAGES[language], source)
    try:
        node, variable = _READERS[language](source)
    except FilterSyntax as error:
        others = [name for name in _TEXTS if name != language and _reads(name, source)]
        if others and not (language in _EXPRESSIONS and source.strip().isalpha()):  # a keyword
            hint = f"{error.message} It is a valid filter in {' or '.join(others)}."
            raise FilterSyntax(hint, **error.details) from error
        raise
    return ParsedFilter(language, source, node, bounded(node), variable)


def _check_kind(language: Language, source: Any) -> None:
    name, example = language.name, language.example
    if language.kind == "json" and not isinstance(source, dict):
        raise InvalidField(f"A filter in {name} is a JSON object, as in {json.dumps(example)}.")
    if language.kind == "text" and not isinstance(source, str):
        raise InvalidField(f"A filter in {name} is a text, as in {example}")


def _reads(language: str, source: str) -> bool:
    try:
        _READERS[language](source)
    except EventHubError:
        return False
    return True


def _pairs(source: dict[str, Any]) -> _NodeAndVariable:
    found = pairs.parse_pairs(source)
    gate = (("domain", found.domain), ("type", found.type), ("application", found.application))
    nodes = [_equal(name, value, "envelope") for name, value in gate if value is not None]
    nodes += [_equal(name, value, "attributes") for name, value in found.attributes]
    if not nodes:
        return Truth(True), None
    return (nodes[0] if len(nodes) == 1 else And(tuple(nodes))), None


def _equal(name: str, value: Any, space: Space) -> Node:
    return Compare("=", Path(name, space), Const(value))


def _ready(source: str) -> _NodeAndVariable:
    found = read_ready(source)
    return found.node, found.variable or None


_READERS: dict[str, Callable[[Any], _NodeAndVariable]] = {
    "pairs": _pairs,
    "propositional": lambda source: (parse_propositional(source), None),
    "predicate": lambda source: (parse_predicate(source), None),
    "ready": _ready,
    "cel": lambda source: (parse_cel(source), None),
    "cesql": lambda source: (parse_cesql(source), None),
    "eventbridge": lambda source: (eventbridge.parse_eventbridge(source), None),
}
_EXPRESSIONS = get_args(ExpressionLanguage)
_TEXTS = [language.name for language in _ALL if language.kind == "text"]
