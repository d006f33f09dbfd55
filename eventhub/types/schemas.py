"""What of JSON Schema the hub takes for definitions, and how it is compiled. Plain module.

Draft 2020-12 with references only to the schema's own `$defs`, none of them circular: they are
written out before anything else is done, so that a definition has a size that can be bounded, and
nothing is ever fetched. Patterns are those of an engine that takes linear time. `unevaluated…` is
not taken: one in another, each looks again at all that is inside.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from eventhub.base import limits
from eventhub.types.errors import InvalidSchema

Schema = dict[str, Any]

ANNOTATIONS = frozenset(
    {
        "$comment",
        "$schema",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "writeOnly",
    }
)
ONE = frozenset(  # keywords whose value is a schema
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
    }
)
MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})  # a list of schemas
WAYS = ("anyOf", "oneOf")
NAMED = frozenset({"dependentSchemas", "patternProperties", "properties"})  # schemas by name
_PLAIN = frozenset(
    {
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "readOnly",
        "required",
        "type",
        "uniqueItems",
    }
)
_FORMATS = frozenset(  # those that are checked in linear time
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uuid",
    }
)
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/"
_PATTERNS = jsonschema_rs.RegexOptions(
    size_limit=limits.TYPE_PATTERN_BYTES_MAX, dfa_size_limit=limits.TYPE_PATTERN_BYTES_MAX
)


def written_out(schema: Any, *, field: str) -> Schema:
    """The schema without references. Raises InvalidSchema at the field of what is not taken."""
    if not isinstance(schema, dict):
        raise InvalidSchema("A schema is a JSON object.", field=field)
    if schema.get("$schema", _DRAFT).rstrip("#") != _DRAFT:
        raise InvalidSchema(f"The hub reads {_DRAFT}.", field=f"{field}.$schema")
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, dict):
        raise InvalidSchema("A JSON object.", field=f"{field}.$defs")
    writer = _Writer(definitions)
    for name, definition in definitions.items():  # also those that nothing refers to
        writer.write(definition, f"{field}.$defs.{name}", ())
    found = writer.write({k: v for k, v in schema.items() if k != "$defs"}, field, ())
    return found if isinstance(found, dict) else {}


class _Writer:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._nodes = 0
        self._values = 0
        self._patterns = 0

    def write(self, schema: Any, field: str, inside: tuple[str, ...]) -> Schema | bool:
        """One schema; `inside` are the definitions that it is part of."""
        self._nodes += 1
        if self._nodes > limits.TYPE_SCHEMA_NODES_MAX:
            raise InvalidSchema(
                f"With its references written out it has over {limits.TYPE_SCHEMA_NODES_MAX}"
                " schemas.",
                field=field,
            )
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise InvalidSchema("A schema is a JSON object, true or false.", field=field)
        if field.count(".") > limits.TYPE_SCHEMA_DEPTH_MAX:
            raise InvalidSchema("It is nested too deeply.", field=field)
        found: Schema = {}
        for keyword, value in schema.items():
            at = f"{field}.{keyword}"
            if keyword == "$ref":
                self._refer(found, value, at, inside)
            elif keyword in MANY:
                written = [
                    self.write(one, f"{at}[{index}]", inside)
                    for index, one in enumerate(_a(list, value, at))
                ]
                found[keyword] = [*found.get(keyword, []), *written]
            elif keyword in NAMED:
                named = _a(dict, value, at).items()
                found[keyword] = {n: self.write(one, f"{at}.{n}", inside) for n, one in named}
                self._count(at, patterns=len(named) if keyword == "patternProperties" else 0)
            else:
                found[keyword] = self.write(value, at, inside) if keyword in ONE else value
                _check_keyword(keyword, value, at)
                if keyword not in ONE:
                    self._count(at, patterns=int(keyword == "pattern"), values=_size(value))
        return found

    def _count(self, at: str, *, patterns: int = 0, values: int = 0) -> None:
        self._patterns += patterns
        self._values += values
        if self._patterns > limits.TYPE_PATTERNS_MAX:
            message = f"It has over {limits.TYPE_PATTERNS_MAX} patterns."
            raise InvalidSchema(message, field=at)
        if self._values > limits.TYPE_SCHEMA_VALUES_MAX:
            message = f"With its references written out it has over {limits.TYPE_SCHEMA_VALUES_MAX}"
            raise InvalidSchema(f"{message} values.", field=at)

    def _refer(self, found: Schema, value: Any, at: str, inside: tuple[str, ...]) -> None:
        """What the reference names, as one more thing that must hold."""
        name = str(value).removeprefix(_REFERENCE).replace("~1", "/").replace("~0", "~")
        if not str(value).startswith(_REFERENCE) or name not in self._definitions:
            raise InvalidSchema("A reference is to `#/$defs/` of the same schema.", field=at)
        if name in inside:
            raise InvalidSchema("A definition may not refer to itself.", field=at)
        written = self.write(self._definitions[name], at, (*inside, name))
        found.setdefault("allOf", []).append(written)


def _size(value: Any) -> int:
    """How many values it is made of."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _check_keyword(keyword: str, value: Any, at: str) -> None:
    known = keyword in _PLAIN or keyword in ANNOTATIONS or keyword in ONE
    if not known and not keyword.startswith("x-"):
        raise InvalidSchema("The keyword is not known here.", field=at[:500])
    if keyword == "format" and value not in _FORMATS:
        raise InvalidSchema(f"A format is {', '.join(sorted(_FORMATS))}.", field=at)


def _a(kind: type, value: Any, at: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidSchema(f"A JSON {'array' if kind is list else 'object'}.", field=at)
    return value


def compiled(schema: Schema, *, field: str) -> jsonschema_rs.Draft202012Validator:
    """The validator of a schema that was written out. Raises InvalidSchema."""
    try:
        jsonschema_rs.meta.validate(schema)
        return jsonschema_rs.Draft202012Validator(
            _without_contexts(schema),
            pattern_options=_PATTERNS,
            validate_formats=True,
            offline=True,
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        place = ".".join(map(str, getattr(error, "instance_path", ())))
        reason = str(getattr(error, "message", error)).partition("\n")[0][:300]
        raise InvalidSchema(f"{reason}.", field=f"{field}.{place}" if place else field) from None


def _without_contexts(schema: Any) -> Any:
    """The same, but that what fails an `anyOf` is told without a reason for each of its ways: with
    many values those are millions.
    """
    if not isinstance(schema, dict):
        return schema
    found: Schema = {}
    for keyword, value in schema.items():
        if keyword in NAMED:
            found[keyword] = {name: _without_contexts(one) for name, one in value.items()}
        elif keyword in MANY:
            found[keyword] = [_without_contexts(one) for one in value]
        else:
            found[keyword] = _without_contexts(value) if keyword in ONE else value
    ways = [{"not": {"not": {way: found.pop(way)}}} for way in WAYS if way in found]
    return {**found, "allOf": [*found.get("allOf", []), *ways]} if ways else found


def immutable(schema: Any, path: str = "") -> Iterator[str]:
    """The dotted paths of the properties that are `readOnly` (FOX-05), in a schema that was written
    out.
    """
    if not isinstance(schema, dict):
        return
    if path and schema.get("readOnly") is True:
        yield path
    for name, one in schema.get("properties", {}).items():
        yield from immutable(one, f"{path}.{name}" if path else name)
    for one in schema.get("allOf", []):
        yield from immutable(one, path)
