"""The declarative map from a provider's request to an event: where each field comes from.
Plain module.

A term has one origin: a constant (`value`), a JSON pointer into the body (`body`, RFC 6901), a
header, a query parameter, or several of these joined. A map cannot compute, so it is bounded by its
size.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from eventhub.base import limits
from eventhub.base.errors import EventHubError, FieldTooLong, InvalidField
from eventhub.event.inbound import refuse_json
from registrations.sources.errors import UnmappedDelivery
from registrations.sources.received import ReceivedRequest

Scalar = str | int | float | bool
Pointer = Annotated[
    str,
    Meta(
        max_length=limits.SOURCE_POINTER_CHARS_MAX,
        pattern=r"^(/([^~/]|~[01])*)*$",
        description="A JSON pointer into the body, such as `/repository/full_name`.",
    ),
]
Word = Annotated[str, Meta(min_length=1, max_length=limits.NAME_CHARS_MAX)]


class PartTerm(Struct, forbid_unknown_fields=True):
    """One origin of a value: exactly one of `value`, `body`, `header` and `query`. `default`: used
    if the request has none.
    """

    value: Scalar | UnsetType = UNSET
    body: Pointer | UnsetType = UNSET
    header: Word | UnsetType = UNSET
    query: Word | UnsetType = UNSET
    default: Scalar | UnsetType = UNSET


class MapTerm(PartTerm, forbid_unknown_fields=True):
    """Where a field comes from: as a part, or by `join`: parts, without those that are missing."""

    join: Annotated[list[PartTerm], Meta(max_length=limits.SOURCE_JOIN_MAX)] | UnsetType = UNSET
    separator: Annotated[str, Meta(max_length=8)] = "."


class SourceMap(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The map of a source. A field that is not given is mapped as usual for the provider."""

    domain: MapTerm | UnsetType = UNSET
    type: MapTerm | UnsetType = UNSET
    key: MapTerm | UnsetType = UNSET
    id: MapTerm | UnsetType = UNSET
    time: MapTerm | UnsetType = UNSET
    attributes: dict[Word, MapTerm] | UnsetType = UNSET


_ORIGINS = ("value", "body", "header", "query", "join")
_TEXTS = ("domain", "type", "key", "id")
_REQUIRED = ("domain", "type")
_MILLISECONDS_FROM = 100_000_000_000  # as seconds this would be the year 5138


class MapInput(NamedTuple):
    """What the terms of a map read from a request."""

    document: Any
    headers: Mapping[str, str]
    query: Mapping[str, str]


def parse_map(given: Any) -> SourceMap:
    """Validate a map. Raises subclasses of BadRequest with the field."""
    try:
        found = msgspec.convert(given, SourceMap)
    except msgspec.ValidationError as error:
        refuse_json(error)
    attributes = {} if found.attributes is UNSET else found.attributes
    if len(attributes) > limits.SOURCE_ATTRIBUTES_MAX:
        raise FieldTooLong(field="attributes", count_max=limits.SOURCE_ATTRIBUTES_MAX)
    terms = {name: getattr(found, name) for name in (*_TEXTS, "time")}
    terms |= {f"attributes.{name}": term for name, term in attributes.items()}
    for name, term in terms.items():
        if term is not UNSET:
            _check_term(term, name)
    return found


def _check_term(term: PartTerm, field: str) -> None:
    given = [name for name in _ORIGINS if getattr(term, name, UNSET) is not UNSET]
    if len(given) != 1:
        raise InvalidField(f"Give one of {', '.join(_ORIGINS)}.", field=field)
    if isinstance(term, MapTerm) and not isinstance(term.join, UnsetType):
        if not term.join:
            raise InvalidField("Give at least one part.", field=f"{field}.join")
        for index, part in enumerate(term.join):
            _check_term(part, f"{field}.join.{index}")


def apply_map(own: SourceMap, usual: SourceMap, request: ReceivedRequest) -> dict[str, Any]:
    """Return the mapped fields of the event, in the form of the emit route. Raises UnmappedDelivery
    with the field, MalformedJson, InvalidUtf8.
    """
    read = MapInput(request.document(), request.headers, _query_of(request))
    found: dict[str, Any] = {}
    for name in (*_TEXTS, "time", "attributes"):
        given = getattr(own, name)
        term = getattr(usual, name) if given is UNSET else given
        if term is UNSET:
            continue
        try:
            value = _attributes(term, read) if name == "attributes" else _field(name, term, read)
        except EventHubError as error:
            error.field = error.field or name
            raise
        if value is not UNSET:
            found[name] = value
    return found


def _query_of(request: ReceivedRequest) -> dict[str, str]:
    try:
        return dict(request.parameters())
    except ValueError:
        message = f"The query has more than {limits.SOURCE_FORM_FIELDS_MAX} parameters."
        raise UnmappedDelivery(message, field="query") from None


def _field(name: str, term: MapTerm, read: MapInput) -> Any:
    value = _value(term, read)
    if value is UNSET or value == "":
        if name in _REQUIRED:
            raise UnmappedDelivery(f"The request has no value for `{name}`.")
        return UNSET
    return _time_text(value) if name == "time" else _text(value)


def _attributes(terms: Mapping[str, MapTerm], read: MapInput) -> dict[str, Any]:
    values = {name: _value(term, read) for name, term in terms.items()}
    return {name: value for name, value in values.items() if value is not UNSET}


def _value(term: PartTerm, read: MapInput) -> Any:
    """Return the value of a term; UNSET: the request has none. JSON's null counts as none."""
    if isinstance(term, MapTerm) and not isinstance(term.join, UnsetType):
        parts = [_value(part, read) for part in term.join]
        texts = [_text(part) for part in parts if part not in (UNSET, "")]
        return term.separator.join(texts) if texts else term.default
    found: Any = UNSET
    if not isinstance(term.body, UnsetType):
        found = _at(read.document, term.body)
    elif not isinstance(term.header, UnsetType):
        found = read.headers.get(term.header.lower(), UNSET)
    elif not isinstance(term.query, UnsetType):
        found = read.query.get(term.query, UNSET)
    else:
        found = term.value
    return term.default if found in (None, UNSET) else found


def _at(document: Any, pointer: str) -> Any:
    """Return the value that a JSON pointer names; UNSET if there is none."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name, UNSET)
        elif isinstance(document, list) and name.isascii() and name.isdigit():
            index = int(name[:9])
            document = document[index] if index < len(document) else UNSET
        else:
            return UNSET
    return document


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise UnmappedDelivery("A text is expected, and the request has an object or a list.")


def _time_text(value: Any) -> str:
    """Return a time in the form of RFC 3339: of such a text, or of seconds or milliseconds since
    1970.
    """
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            found = datetime.fromisoformat(value)
        else:
            seconds = float(_text(value))
            if seconds >= _MILLISECONDS_FROM:
                seconds /= 1_000
            found = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise UnmappedDelivery("This is neither a time nor seconds since 1970.") from None
    if found.tzinfo is None:
        raise UnmappedDelivery("The time has no offset from UTC.")
    return found.isoformat()
