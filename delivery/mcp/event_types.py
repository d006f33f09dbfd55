"""The event types of MCP Events: a zone's declared types, their schemas, and the filter that the
arguments of a subscription mean. Plain module.

A subscription reads one stream, so that its cursor is that of the stream. It takes the events of
exactly its type, because the payload's schema is that of the type.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import msgspec
import orjson
from msgspec import Meta

from delivery.mcp.errors import not_found
from eventhub.base import limits
from eventhub.base.errors import EventHubError, InvalidField
from eventhub.event.inbound import NO_NUL, refuse_json
from eventhub.types.definitions import Definition
from eventhub.types.registry import ZoneTypes
from registrations.filters.ast import And, Node
from registrations.filters.languages import LANGUAGES, parse
from registrations.filters.printed import printed

_SEPARATOR = "::"  # as in READY filters
_NAME_CHARS_MAX = 2 * limits.TEXT_CHARS_MAX + len(_SEPARATOR)
_SCALARS = ("string", "integer", "number", "boolean")
_SHOWN = ("type", "enum", "description", "minimum", "maximum", "format")  # of an attribute
_DEFAULT_LANGUAGE = "predicate"
DELIVERY = ("poll", "push", "webhook")


class SubscriptionArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of a subscription."""

    stream: Annotated[str, Meta(pattern=NO_NUL)]
    attributes: dict[str, Any] = {}
    language: str = _DEFAULT_LANGUAGE
    filter: Any = None


class EventsPage(NamedTuple):
    """A page of event types. `next`: the cursor of the next one; None: there is none."""

    events: list[dict[str, Any]]
    next: str | None


def name_of(definition: Definition) -> str:
    return f"{definition.domain}{_SEPARATOR}{definition.type}"


def find_type(types: ZoneTypes, name: str) -> Definition:
    """Return the newest version of the type that a name means. Raises RpcError."""
    at = name.find(_SEPARATOR) if len(name) <= _NAME_CHARS_MAX else -1
    while at >= 0:
        found = types.newest(name[:at], name[at + len(_SEPARATOR) :])
        if found is not None:
            return found
        at = name.find(_SEPARATOR, at + 1)
    raise not_found("event", "This zone declares no such event type; events/list has all.")


def list_types(types: ZoneTypes, streams: Sequence[str], after: str) -> EventsPage:
    """Return the event types with a name after `after`; none for a caller without streams."""
    named = sorted((name_of(one), one) for one in types.declared()) if streams else []
    found = [pair for pair in named if pair[0] > after]
    page = found[: limits.MCP_TYPES_PER_PAGE]
    events = [_event_json(definition, streams) for _, definition in page]
    return EventsPage(events, page[-1][0] if len(found) > len(page) else None)


def _event_json(definition: Definition, streams: Sequence[str]) -> dict[str, Any]:
    schema = orjson.loads(definition.schema)
    name = name_of(definition)
    about = schema.get("description") or f"An event of the type {name} was stored."
    return {
        "name": name,
        "description": about,
        "delivery": list(DELIVERY),
        "inputSchema": _input_schema(schema, streams),
        "payloadSchema": _payload_schema(definition, schema),
    }


def _input_schema(schema: Mapping[str, Any], streams: Sequence[str]) -> dict[str, Any]:
    """Return the schema of the arguments. Its attributes suggest those of the type; others may be
    given too.
    """
    stream: dict[str, Any] = {"type": "string", "description": "The stream to read."}
    if len(streams) <= limits.MCP_STREAMS_NAMED_MAX:
        stream["enum"] = list(streams)
    properties = schema.get("properties", {})
    attributes = {name: _shown(one) for name, one in properties.items() if _is_scalar(one)}
    return {
        "type": "object",
        "properties": {
            "stream": stream,
            "attributes": {
                "type": "object",
                "description": "Attributes that the event must have with exactly these values.",
                "properties": attributes,
            },
            "language": {
                "type": "string",
                "description": "The language of `filter`.",
                "enum": [name for name in LANGUAGES if name != "pairs"],
                "default": _DEFAULT_LANGUAGE,
            },
            "filter": {
                "description": "A filter that the event must match as well, such as"
                " (and (> total 100) (= country 'NO)).",
                "type": ["string", "object"],
            },
        },
        "required": ["stream"],
        "additionalProperties": False,
    }


def _is_scalar(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") in _SCALARS


def _shown(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: schema[name] for name in _SHOWN if name in schema}


def _payload_schema(definition: Definition, schema: Any) -> dict[str, Any]:
    """Return the schema of `data`, the event as the API shows it."""
    properties: dict[str, Any] = {
        "domain": {"const": definition.domain},
        "type": {"const": definition.type},
        "version": {"type": "string", "description": "Of the type's definition."},
        "source": {"type": "string", "description": "The client that emitted the event."},
        "time": {"type": "string", "format": "date-time"},
        "attributes": schema,
        "body": {"description": "The body, if it is JSON."},
    }
    required = ["domain", "type", "attributes"]
    return {"type": "object", "properties": properties, "required": required}


def read_arguments(arguments: Mapping[str, Any]) -> SubscriptionArguments:
    """Return the arguments of a subscription. Raises subclasses of BadRequest with the field."""
    try:
        return msgspec.convert(arguments, SubscriptionArguments)
    except msgspec.ValidationError as error:
        with naming("arguments"):
            refuse_json(error)


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Have the errors of a block name a field below the given one."""
    try:
        yield
    except EventHubError as error:
        error.field = f"{field}.{error.field}" if error.field else field
        raise


def filter_of(definition: Definition, arguments: SubscriptionArguments) -> dict[str, Any]:
    """Return the filter that a subscription means, as the fields of a listener or registration.
    Raises what the languages raise, with the argument as field.
    """
    gate = {"domain": definition.domain, "type": definition.type}
    with naming("arguments"):
        nodes = [parse("pairs", {**gate, "attributes": arguments.attributes}).node]
    if arguments.filter is not None:
        if arguments.language == "pairs":
            raise InvalidField("Pairs belong in `attributes`.", field="arguments.language")
        with naming("arguments.filter"):
            nodes.append(parse(arguments.language, arguments.filter).node)
    return {"language": "predicate", "filter": printed(And(tuple(_items(nodes))))}


def _items(nodes: Iterable[Node]) -> Iterable[Node]:
    """Yield the parts of a conjunction of nodes."""
    for node in nodes:
        if isinstance(node, And):
            yield from node.items
        else:
            yield node
