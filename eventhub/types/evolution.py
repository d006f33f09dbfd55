"""Whether a new version of a type takes what the version before took. Plain module.

A new version may add optional fields and loosen what was asked; everything else breaks. A field
that is added may say anything about itself: suppliers of the version before do not send it, unless
the type speaks of it elsewhere. What the rules below do not know must stay as it was.
"""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from eventhub.base import limits
from eventhub.types.described_fields import ITEM, Place, Spoken, matches
from eventhub.types.schemas import ANNOTATIONS, Schema

_LOWEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_HIGHEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_ALONE = frozenset(  # each says something of its own: without it more is taken
    {
        "dependentRequired",
        "dependentSchemas",
        "format",
        "not",
        "oneOf",
        "pattern",
        "propertyNames",
    }
)


def breaks(old: Schema, new: Schema, field: str, spoken: Spoken | None = None) -> list[str]:
    """What of the new version, both written out, would refuse events of the old one: a line for
    each, with the field; empty if nothing does. `spoken`: the fields that may be sent already, if
    they are more than the old version's.
    """
    found = []
    for line in _breaks(old, new, Place(field, (), spoken or Spoken([old]))):
        found.append(line)
        if len(found) == limits.TYPE_BREAKS_SHOWN_MAX:
            break
    return found


def _breaks(old: Any, new: Any, at: Place) -> Iterator[str]:
    if old is False or new is True or _same(old, new):
        return
    if new is False:
        yield f"{at}: is no longer allowed"
        return
    was: Schema = {} if old is True else old
    for keyword in sorted((was.keys() | new.keys()) - ANNOTATIONS):
        if keyword.startswith("x-") or _same(was.get(keyword), new.get(keyword)):
            continue
        rule = _RULES.get(keyword)
        if rule is not None:
            yield from rule(was, new, at)
        elif keyword in new or keyword not in _ALONE:
            yield f"{at}: `{keyword}` has changed"


def _same(one: Any, other: Any) -> bool:
    """Python takes true for 1, JSON does not."""
    sort = orjson.OPT_SORT_KEYS
    return orjson.dumps(one, option=sort) == orjson.dumps(other, option=sort)


def _in(value: Any, values: list[Any]) -> bool:
    return any(_same(value, other) for other in values)


def _types(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    wanted = _listed(new.get("type"))
    if wanted is None:
        return
    taken = {*wanted, "integer"} if "number" in wanted else set(wanted)
    had = _listed(old.get("type"))
    if had is None or not set(had) <= taken:
        yield f"{at}: `type` is only {', '.join(wanted)} now"


def _listed(types: Any) -> list[str] | None:
    return types if types is None or isinstance(types, list) else [types]


def _values(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    had, has = _allowed(old), _allowed(new)
    if has is not None and (had is None or any(not _in(value, has) for value in had)):
        yield f"{at}: fewer values are allowed"


def _allowed(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values: list[Any] | None = schema.get("enum")
    return values


def _bound(keyword: str, sign: int) -> Callable[[Schema, Schema, Place], Iterator[str]]:
    def rule(old: Schema, new: Schema, at: Place) -> Iterator[str]:
        wanted = new.get(keyword)
        if wanted is None or (
            wanted == 0 and keyword in ("minLength", "minItems", "minProperties")
        ):
            return
        if keyword not in old or sign * (wanted - old[keyword]) > 0:
            yield f"{at}: `{keyword}` is {wanted} now"

    return rule


def _required(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    for name in new.get("required", []):
        if name not in old.get("required", []):
            yield f"{at.to(name)}: is required now"


def _properties(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    had, has = old.get("properties", {}), new.get("properties", {})
    rest_had, rest_has = (one.get("additionalProperties", True) for one in (old, new))
    for name in sorted(had.keys() | has.keys()):
        if name in had:
            yield from _breaks(had[name], has.get(name, rest_has), at.to(name))
            continue
        patterns = old.get("patternProperties", {})
        asked = [one for pattern, one in patterns.items() if matches(pattern, name)]
        before = asked[0] if asked else rest_had
        if has[name] is False or isinstance(before, dict) or at.spoken.of(at.steps, name):
            yield from _breaks(before, has[name], at.to(name))


def _additional(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    had, has = (one.get("additionalProperties", True) for one in (old, new))
    if has is False and had is not False:
        yield f"{at}: fields that are not declared are no longer allowed"
    else:
        yield from _breaks(had, has, at.to("*"))


def _items(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    yield from _breaks(old.get("items", True), new.get("items", True), at.to(ITEM))


def _multiple(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    wanted, had = new.get("multipleOf"), old.get("multipleOf")
    if wanted is not None and (had is None or had % wanted):
        yield f"{at}: `multipleOf` is {wanted} now"


def _flag(keyword: str) -> Callable[[Schema, Schema, Place], Iterator[str]]:
    def rule(old: Schema, new: Schema, at: Place) -> Iterator[str]:
        if new.get(keyword) is True:
            yield f"{at}: `{keyword}` holds now"

    return rule


def _any_of(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    ways = new.get("anyOf")
    if ways is not None and not all(_in(way, ways) for way in old.get("anyOf", [None])):
        yield f"{at}: `anyOf` takes less"


def _all_of(old: Schema, new: Schema, at: Place) -> Iterator[str]:
    had, has = old.get("allOf", []), new.get("allOf", [])
    if len(had) == len(has):
        for one, other in zip(had, has, strict=True):
            yield from _breaks(one, other, at)
    elif not all(_in(one, had) for one in has):
        yield f"{at}: `allOf` asks for more"


_RULES: dict[str, Callable[[Schema, Schema, Place], Iterator[str]]] = {
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
    **{keyword: _bound(keyword, 1) for keyword in _LOWEST},
    **{keyword: _bound(keyword, -1) for keyword in _HIGHEST},
}
