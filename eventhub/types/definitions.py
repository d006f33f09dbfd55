"""One version of a type's definition, and the check of events against it. Plain module."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec
import orjson

from eventhub.base import limits
from eventhub.base.errors import TooDeep
from eventhub.event.inbound import EventIn
from eventhub.types.cost import Work, work_of
from eventhub.types.errors import InvalidSchema, TypeTooCostly, TypeViolation
from eventhub.types.schemas import WAYS, Schema, compiled, written_out

# The envelope's fields that a type may ask for: READY's optional header (RDY-12).
HEADER = frozenset(
    {
        "name",
        "version",
        "node",
        "application",
        "environment",
        "priority",
        "expires_at",
        "time",
        "key",
        "bundle",
        "bundle_number",
        "depends",
        "correlation",
        "cause",
        "traceparent",
        "destinations",
        "audience",
        "security_level",
        "summary",
        "time_constraint_ms",
        "merge_scheme",
    }
)


class Definition(NamedTuple):
    """One version, as it is stored."""

    domain: str
    type: str
    version: int
    parent: str | None  # a type of the same domain
    evolution: str  # backward or none: what the next version must be
    schema: str  # JSON text: JSON Schema of the attributes
    header: str | None  # of the optional header


class Schemas(NamedTuple):
    """A definition's schemas, written out."""

    attributes: Schema
    header: Schema | None


def read_schemas(schema: Any, header: Any) -> Schemas:
    """The schemas of a declaration. Raises InvalidSchema."""
    found = Schemas(
        written_out(schema, field="schema"),
        None if header is None else written_out(header, field="header"),
    )
    for name in _names(found.header or {}):
        if name not in HEADER:
            raise InvalidSchema("It is no field of the header.", field=f"header.{name[:100]}")
    compiled(found.attributes, field="schema")
    if found.header is not None:
        compiled(found.header, field="header")
    return found


def _names(header: Schema) -> Iterator[str]:
    yield from header.get("properties", {})
    required = header.get("required", [])
    yield from (name for name in required if isinstance(name, str))


def schemas_of(definition: Definition) -> Schemas:
    """The schemas of a stored definition."""
    header = None if definition.header is None else orjson.loads(definition.header)
    return read_schemas(orjson.loads(definition.schema), header)


class Checker:
    """Checks events of one version of a type: its own definition and those of its parents."""

    __slots__ = ("_attributes", "_header", "_of", "_work", "_work_header")

    def __init__(self, definitions: list[Definition]) -> None:
        """The version itself first, then the newest of each parent, the nearest first."""
        self._of = definitions[0]
        schemas = [schemas_of(one) for one in definitions]
        self._attributes = [compiled(one.attributes, field="schema") for one in schemas]
        headers = [one.header for one in schemas if one.header is not None]
        self._header = [compiled(one, field="header") for one in headers]
        self._work = sum((work_of(one.attributes) for one in schemas), Work())
        self._work_header = sum(map(work_of, headers), Work())

    def work(self, event: EventIn, size: int) -> int:
        """What `check` may cost, in units; `size`: the bytes of the event as stored. Raises
        TypeTooCostly for what one event may not.
        """
        found = self._work.of(event.attributes, size)
        if self._header:
            found += self._work_header.of(_header_of(event), size)
        if found > limits.TYPE_WORK_PER_EVENT_MAX:
            raise TypeTooCostly(field="attributes", work_max=limits.TYPE_WORK_PER_EVENT_MAX)
        return found

    def check(self, event: EventIn) -> None:
        """Raises TypeViolation with field and reason. The event's own bounds are checked before."""
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
        except ValueError:  # deeper than the library goes
            raise TooDeep(field="attributes") from None
        reason = _reason(error)
        raise TypeViolation(
            f"{reason} (type `{self._of.type}` of `{self._of.domain}`, version {self._of.version})",
            field=(prefix + _place(error)).rstrip("."),
            reason=reason,
            version=str(self._of.version),
        )


def _header_of(event: EventIn) -> dict[str, Any]:
    given = msgspec.to_builtins(event)
    return {name: given[name] for name in HEADER if given[name]}


def _reason(error: jsonschema_rs.ValidationError) -> str:
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Not) and isinstance(kind.schema, dict):
        inner = kind.schema.get("not")
        for way in WAYS:
            if isinstance(inner, dict) and way in inner:
                return f"it is not what `{way}` of the definition asks for"
    return error.message[:300]


def _place(error: jsonschema_rs.ValidationError) -> str:
    """The dotted path of what is wrong; of what is missing, where it should be."""
    path = [str(step) for step in error.instance_path]
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        path.append(kind.property)
    elif isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        path.append(kind.unexpected[0])
    return ".".join(path)[:500]
