"""Backward compatibility of a new version of a type with the previous one. Plain module.

A new version may add optional fields and loosen constraints; every other change is breaking. An
added field may have any constraints, because producers of the previous version do not send it,
unless the type describes it elsewhere. A keyword without a rule below must not change.
"""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from eventhub.base import limits
from eventhub.types.described_fields import ITEM, DescribedFields, ValuePath, matches
from eventhub.types.schemas import ANNOTATIONS, Schema

_MINIMA = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MAXIMA = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
# each is a constraint of its own: removing it accepts more
_INDEPENDENT = frozenset({"dependentRequired", "dependentSchemas", "format", "not", "oneOf"})
_INDEPENDENT |= {"pattern", "propertyNames"}


def breaks(
    old: Schema, new: Schema, field: str, described: DescribedFields | None = None
) -> list[str]:
    """Return the breaking changes between two inlined versions, a line for each with its field;
    empty if there are none. `described`: the fields that may be sent already, by default those of
    the old version.
    """
    found = []
    for line in _breaks(old, new, ValuePath(field, (), described or DescribedFields([old]))):
        found.append(line)
        if len(found) == limits.TYPE_BREAKS_SHOWN_MAX:
            break
    return found


def _breaks(old: Any, new: Any, at: ValuePath) -> Iterator[str]:
    if old is False or new is True or _same(old, new):
        return
    if new is False:
        yield f"{at}: is no longer allowed"
        return
    before: Schema = {} if old is True else old
    for keyword in sorted((before.keys() | new.keys()) - ANNOTATIONS):
        if keyword.startswith("x-") or _same(before.get(keyword), new.get(keyword)):
            continue
        rule = _RULES.get(keyword)
        if rule is not None:
            yield from rule(before, new, at)
        elif keyword in new or keyword not in _INDEPENDENT:
            yield f"{at}: `{keyword}` has changed"


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON, where true is not 1."""
    sort = orjson.OPT_SORT_KEYS
    return orjson.dumps(one, option=sort) == orjson.dumps(other, option=sort)


def _in(value: Any, values: list[Any]) -> bool:
    return any(_same(value, other) for other in values)


def _types(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    types = _listed(new.get("type"))
    if types is None:
        return
    accepted = {*types, "integer"} if "number" in types else set(types)
    before = _listed(old.get("type"))
    if before is None or not set(before) <= accepted:
        yield f"{at}: `type` is only {', '.join(types)} now"


def _listed(types: Any) -> list[str] | None:
    return types if types is None or isinstance(types, list) else [types]


def _values(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    had, has = _allowed(old), _allowed(new)
    if has is not None and (had is None or any(not _in(value, has) for value in had)):
        yield f"{at}: fewer values are allowed"


def _allowed(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values: list[Any] | None = schema.get("enum")
    return values


def _bound(keyword: str, sign: int) -> Callable[[Schema, Schema, ValuePath], Iterator[str]]:
    def rule(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
        bound = new.get(keyword)
        if bound is None or (bound == 0 and keyword in ("minLength", "minItems", "minProperties")):
            return
        if keyword not in old or sign * (bound - old[keyword]) > 0:
            yield f"{at}: `{keyword}` is {bound} now"

    return rule


def _required(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    for name in new.get("required", []):
        if name not in old.get("required", []):
            yield f"{at.to(name)}: is required now"


def _properties(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    had, has = old.get("properties", {}), new.get("properties", {})
    rest_had, rest_has = (one.get("additionalProperties", True) for one in (old, new))
    for name in sorted(had.keys() | has.keys()):
        if name in had:
            yield from _breaks(had[name], has.get(name, rest_has), at.to(name))
            continue
        patterns = old.get("patternProperties", {})
        matching = [one for pattern, one in patterns.items() if matches(pattern, name)]
        before = matching[0] if matching else rest_had
        if has[name] is False or isinstance(before, dict) or at.described.include(at.steps, name):
            yield from _breaks(before, has[name], at.to(name))


def _additional(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    had, has = (one.get("additionalProperties", True) for one in (old, new))
    if has is False and had is not False:
        yield f"{at}: fields that are not declared are no longer allowed"
    else:
        yield from _breaks(had, has, at.to("*"))


def _items(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    yield from _breaks(old.get("items", True), new.get("items", True), at.to(ITEM))


def _multiple(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    divisor, had = new.get("multipleOf"), old.get("multipleOf")
    if divisor is not None and (had is None or had % divisor):
        yield f"{at}: `multipleOf` is {divisor} now"


def _flag(keyword: str) -> Callable[[Schema, Schema, ValuePath], Iterator[str]]:
    def rule(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
        if new.get(keyword) is True:
            yield f"{at}: `{keyword}` is set now"

    return rule


def _any_of(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    options = new.get("anyOf")
    if options is not None and not all(_in(one, options) for one in old.get("anyOf", [None])):
        yield f"{at}: `anyOf` accepts less"


def _all_of(old: Schema, new: Schema, at: ValuePath) -> Iterator[str]:
    had, has = old.get("allOf", []), new.get("allOf", [])
    if len(had) == len(has):
        for one, other in zip(had, has, strict=True):
            yield from _breaks(one, other, at)
    elif not all(_in(one, had) for one in has):
        yield f"{at}: `allOf` requires more"


_RULES: dict[str, Callable[[Schema, Schema, ValuePath], Iterator[str]]] = {
    "type": _types,
    "enum": _values,
    "const": _values,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "multipleOf": _multiple,
    "readOnly": _flag("readOnly"),
    "uniqueItems": _flag("uniqueItems"),
    "anyOf": _any_of,
    "allOf": _all_of,
    **{keyword: _bound(keyword, 1) for keyword in _MINIMA},
    **{keyword: _bound(keyword, -1) for keyword in _MAXIMA},
}
