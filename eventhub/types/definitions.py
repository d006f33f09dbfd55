"""One version of a type's definition, and the check of events against it. Plain module."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec
import orjson

from eventhub.base import limits
from eventhub.base.errors import TooDeep
from eventhub.event.inbound import EventIn
from eventhub.types.cost import CheckCost, cost_of
from eventhub.types.errors import InvalidSchema, TypeTooCostly, TypeViolation
from eventhub.types.schemas import (
    ALTERNATIVES,
    Schema,
    compiled,
    immutable,
    inlined,
    require_read_only_properties,
)

# The fields of the envelope that a type may constrain: the optional header of READY (RDY-12).
HEADER = frozenset(EventIn.__struct_fields__) - {
    *("domain", "type", "attributes", "channels", "mask", "id", "tombstone"),
    *("body", "body_base64", "content_type", "deliver_at", "delay_ms"),
}


class Definition(NamedTuple):
    """One version of an event type, as stored."""

    domain: str
    type: str
    version: int
    parent: str | None  # a type of the same domain
    evolution: str  # backward or none: the compatibility required of the next version
    schema: str  # JSON Schema of the attributes, as JSON text
    header: str | None  # JSON Schema of the optional header
    deleted: bool = False  # new events of the type are undeclared


class Schemas(NamedTuple):
    """The schemas of a definition, inlined."""

    attributes: Schema
    header: Schema | None


def read_schemas(schema: Any, header: Any) -> Schemas:
    """Return the inlined schemas of a declaration. Raises InvalidSchema."""
    found = Schemas(
        inlined(schema, field="schema"),
        None if header is None else inlined(header, field="header"),
    )
    for name in _names(found.header or {}):
        if name not in HEADER:
            raise InvalidSchema("The header has no such field.", field=f"header.{name[:100]}")
    compiled(found.attributes, field="schema")
    if found.header is not None:
        compiled(found.header, field="header")
    return found


def check_declaration(schema: Any, header: Any) -> None:
    """Check the schemas of a new declaration. Raises InvalidSchema."""
    found = read_schemas(schema, header)
    require_read_only_properties(found.attributes, "schema")
    require_read_only_properties(found.header, "header", inside=False)


def _names(header: Schema) -> Iterator[str]:
    yield from header.get("properties", {})
    required = header.get("required", [])
    yield from (name for name in required if isinstance(name, str))


def schemas_of(definition: Definition) -> Schemas:
    """Return the inlined schemas of a stored definition."""
    header = None if definition.header is None else orjson.loads(definition.header)
    return read_schemas(orjson.loads(definition.schema), header)


def immutable_paths(schemas: Iterable[Schemas]) -> list[str]:
    """Return the dotted paths of the immutable properties of a type and its parents (FOX-05)."""
    return sorted({path for one in schemas for path in immutable(one.attributes)})


class Checker:
    """Checks events of one version of a type against its definition and those of its parents."""

    __slots__ = (
        *("_attributes", "_cost", "_definition", "_header", "_header_cost"),
        *("comparison", "immutable"),
    )

    def __init__(self, definitions: list[Definition]) -> None:
        """Take the version itself, then the newest version of each parent, nearest first."""
        self._definition = definitions[0]
        schemas = [schemas_of(one) for one in definitions]
        self.immutable = immutable_paths(schemas)
        # units of work to compare a copy with its original
        self.comparison = 10 * sum(path.count(".") + 1 for path in self.immutable)
        self._attributes = [compiled(one.attributes, field="schema") for one in schemas]
        headers = [one.header for one in schemas if one.header is not None]
        self._header = [compiled(one, field="header") for one in headers]
        self._cost = sum((cost_of(one.attributes) for one in schemas), CheckCost())
        self._header_cost = sum(map(cost_of, headers), CheckCost())

    def work(self, event: EventIn, size: int) -> int:
        """Return an upper bound of the cost of `check`, in units; `size`: the stored bytes of the
        event. Raises TypeTooCostly above the limit of one event.
        """
        found = self._cost.of(event.attributes, size)
        if self._header:
            found += self._header_cost.of(_header_of(event), size)
        if found > limits.TYPE_WORK_PER_EVENT_MAX:
            raise TypeTooCostly(field="attributes", work_max=limits.TYPE_WORK_PER_EVENT_MAX)
        return found

    def check(self, event: EventIn) -> None:
        """Raise TypeViolation, with field and reason, if the event does not satisfy the type."""
        for validator in self._attributes:
            self._require(validator, event.attributes, "attributes.")
        if self._header:
            header = _header_of(event)
            for validator in self._header:
                self._require(validator, header, "")

    def _require(
        self, validator: jsonschema_rs.Draft202012Validator, value: dict[str, Any], prefix: str
    ) -> None:
        try:
            validator.validate(value)
            return
        except jsonschema_rs.ValidationError as found:
            error = found
        except ValueError:  # deeper than the library supports
            raise TooDeep(field="attributes") from None
        reason, own = _reason(error), self._definition
        raise TypeViolation(
            f"{reason} (type `{own.type}` of `{own.domain}`, version {own.version})",
            field=(prefix + _path(error)).rstrip("."),
            reason=reason,
            version=str(own.version),
        )


def _header_of(event: EventIn) -> dict[str, Any]:
    fields = msgspec.to_builtins(event)
    return {name: fields[name] for name in HEADER if fields[name]}


def _reason(error: jsonschema_rs.ValidationError) -> str:
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Not) and isinstance(kind.schema, dict):
        inner = kind.schema.get("not")
        for keyword in ALTERNATIVES:
            if isinstance(inner, dict) and keyword in inner:
                return f"it does not satisfy `{keyword}` of the definition"
    return error.message[:300]


def _path(error: jsonschema_rs.ValidationError) -> str:
    """Return the dotted path of the invalid, missing or unexpected field."""
    path = [str(step) for step in error.instance_path]
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        path.append(kind.property)
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        path.append(kind.unexpected[0])
    return ".".join(path)[:500]
