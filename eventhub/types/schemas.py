"""The subset of JSON Schema that definitions may use, and its compilation. Plain module.

Draft 2020-12 with references only to the schema's own `$defs`, none of them circular. References
are inlined first, so that the size of a definition can be bounded and nothing is ever fetched. The
pattern engine runs in linear time. `unevaluated…` is not supported: nested ones would each examine
all values inside again.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from eventhub.base import limits
from eventhub.types.errors import InvalidSchema

Schema = dict[str, Any]

ANNOTATIONS = frozenset({"$comment", "$schema", "title", "description", "default"})
ANNOTATIONS |= {"examples", "deprecated", "writeOnly"}
# keywords whose value is a schema
ONE = frozenset({"additionalProperties", "contains", "else", "if", "items", "not"})
ONE |= {"propertyNames", "then"}
MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})  # a list of schemas
ALTERNATIVES = ("anyOf", "oneOf")
NAMED = frozenset({"dependentSchemas", "patternProperties", "properties"})  # schemas by name
_PLAIN = frozenset({"const", "dependentRequired", "enum", "format", "multipleOf", "pattern"})
_PLAIN |= {"readOnly", "required", "type", "uniqueItems", "maxContains", "minContains"}
_PLAIN |= {"maximum", "exclusiveMaximum", "maxItems", "maxLength", "maxProperties"}
_PLAIN |= {"minimum", "exclusiveMinimum", "minItems", "minLength", "minProperties"}
# those checked in linear time
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6"})
_FORMATS |= {"json-pointer", "time", "uri", "uri-reference", "uuid"}
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/"
_PATTERNS = jsonschema_rs.RegexOptions(
    size_limit=limits.TYPE_PATTERN_BYTES_MAX, dfa_size_limit=limits.TYPE_PATTERN_BYTES_MAX
)


def inlined(schema: Any, *, field: str) -> Schema:
    """Return the schema with its references inlined. Raises InvalidSchema with the field."""
    if not isinstance(schema, dict):
        raise InvalidSchema("A schema is a JSON object.", field=field)
    if schema.get("$schema", _DRAFT).rstrip("#") != _DRAFT:
        raise InvalidSchema(f"The hub supports {_DRAFT} only.", field=f"{field}.$schema")
    definitions = schema.get("$defs", {})
    if not isinstance(definitions, dict):
        raise InvalidSchema("`$defs` must be a JSON object.", field=f"{field}.$defs")
    inliner = _Inliner(definitions)
    for name, definition in definitions.items():  # also unused ones
        inliner.inline(definition, f"{field}.$defs.{name}", ())
    found = inliner.inline({k: v for k, v in schema.items() if k != "$defs"}, field, ())
    return found if isinstance(found, dict) else {}


class _Inliner:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._nodes = 0
        self._values = 0
        self._patterns = 0

    def inline(self, schema: Any, field: str, inside: tuple[str, ...]) -> Schema | bool:
        """Return one schema, inlined; `inside`: the definitions that contain it."""
        self._nodes += 1
        if self._nodes > limits.TYPE_SCHEMA_NODES_MAX:
            raise InvalidSchema(
                f"References inlined, it has over {limits.TYPE_SCHEMA_NODES_MAX} schemas.",
                field=field,
            )
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise InvalidSchema("A schema is a JSON object, true or false.", field=field)
        if field.count(".") > limits.TYPE_SCHEMA_DEPTH_MAX:
            raise InvalidSchema("The schema is nested too deeply.", field=field)
        found: Schema = {}
        for keyword, value in schema.items():
            at = f"{field}.{keyword}"
            if keyword == "$ref":
                self._refer(found, value, at, inside)
            elif keyword in MANY:
                schemas = [
                    self.inline(one, f"{at}[{index}]", inside)
                    for index, one in enumerate(_typed(list, value, at))
                ]
                found[keyword] = [*found.get(keyword, []), *schemas]
            elif keyword in NAMED:
                named = _typed(dict, value, at).items()
                found[keyword] = {n: self.inline(one, f"{at}.{n}", inside) for n, one in named}
                self._count(at, patterns=len(named) if keyword == "patternProperties" else 0)
            else:
                found[keyword] = self.inline(value, at, inside) if keyword in ONE else value
                _check_keyword(keyword, value, at)
                if keyword not in ONE:
                    self._count(at, patterns=int(keyword == "pattern"), values=_size(value))
        return found

    def _count(self, at: str, *, patterns: int = 0, values: int = 0) -> None:
        self._patterns += patterns
        self._values += values
        if self._patterns > limits.TYPE_PATTERNS_MAX:
            message = f"The schema has over {limits.TYPE_PATTERNS_MAX} patterns."
            raise InvalidSchema(message, field=at)
        if self._values > limits.TYPE_SCHEMA_VALUES_MAX:
            message = f"References inlined, it has over {limits.TYPE_SCHEMA_VALUES_MAX} values."
            raise InvalidSchema(message, field=at)

    def _refer(self, found: Schema, value: Any, at: str, inside: tuple[str, ...]) -> None:
        """Add the referenced definition, inlined, as one more member of `allOf`."""
        name = str(value).removeprefix(_REFERENCE).replace("~1", "/").replace("~0", "~")
        if not str(value).startswith(_REFERENCE) or name not in self._definitions:
            raise InvalidSchema("A reference must be to `#/$defs/` of the same schema.", field=at)
        if name in inside:
            raise InvalidSchema("A definition may not refer to itself.", field=at)
        definition = self.inline(self._definitions[name], at, (*inside, name))
        found.setdefault("allOf", []).append(definition)


def _size(value: Any) -> int:
    """Count the values of a JSON value, including itself."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _check_keyword(keyword: str, value: Any, at: str) -> None:
    known = keyword in _PLAIN or keyword in ANNOTATIONS or keyword in ONE
    if not known and not keyword.startswith("x-"):
        raise InvalidSchema("The hub does not support this keyword.", field=at[:500])
    if keyword == "format" and value not in _FORMATS:
        raise InvalidSchema(f"The format must be one of {', '.join(sorted(_FORMATS))}.", field=at)


def _typed(kind: type, value: Any, at: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidSchema(f"It must be a JSON {'array' if kind is list else 'object'}.", field=at)
    return value


def compiled(schema: Schema, *, field: str) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of an inlined schema. Raises InvalidSchema."""
    try:
        jsonschema_rs.meta.validate(schema)
        return jsonschema_rs.Draft202012Validator(
            _without_contexts(schema),
            pattern_options=_PATTERNS,
            validate_formats=True,
            offline=True,
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        path = ".".join(map(str, getattr(error, "instance_path", ())))
        reason = str(getattr(error, "message", error)).partition("\n")[0][:300]
        raise InvalidSchema(f"{reason}.", field=f"{field}.{path}" if path else field) from None


def _without_contexts(schema: Any) -> Any:
    """Replace `anyOf` and `oneOf` with double negations, so that a failure is reported without a
    reason for each alternative: with many values, these would be millions.
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
    negated = [
        {"not": {"not": {keyword: found.pop(keyword)}}}
        for keyword in ALTERNATIVES
        if keyword in found
    ]
    return {**found, "allOf": [*found.get("allOf", []), *negated]} if negated else found


def immutable(schema: Any, path: str = "") -> Iterator[str]:
    """Yield the dotted paths of the `readOnly` properties (FOX-05) of an inlined schema."""
    if not isinstance(schema, dict):
        return
    if path and schema.get("readOnly") is True:
        yield path
    for name, one in schema.get("properties", {}).items():
        yield from immutable(one, f"{path}.{name}" if path else name)
    for one in schema.get("allOf", []):
        yield from immutable(one, path)


def require_read_only_properties(
    schema: Any, field: str, *, inside: bool = True, property: bool = False
) -> None:
    """Raise InvalidSchema for a `readOnly` that `immutable` does not yield, in an inlined schema:
    in a list's `items` or an alternative, for instance. `inside`: `properties` of this schema are
    yielded; `property`: the schema is of one of these.
    """
    if not isinstance(schema, dict):
        return
    if schema.get("readOnly") is True and not property:
        message = "`readOnly` is for a property, also in `allOf` and in an object inside; "
        message += "mark the property that has this value."
        raise InvalidSchema(message, field=f"{field}.readOnly"[:500])
    for keyword, at, inner in _inner_schemas(schema, field):
        if keyword == "allOf":
            require_read_only_properties(inner, at, inside=inside, property=property)
        else:
            known = inside and keyword == "properties"
            require_read_only_properties(inner, at, inside=known, property=known)


def _inner_schemas(schema: Schema, field: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the schemas one level below with their keywords and paths."""
    for keyword, value in schema.items():
        at = f"{field}.{keyword}"
        if keyword in NAMED:
            yield from ((keyword, f"{at}.{name}", one) for name, one in value.items())
        elif keyword in MANY:
            yield from ((keyword, f"{at}[{index}]", one) for index, one in enumerate(value))
        elif keyword in ONE:
            yield keyword, at, value
