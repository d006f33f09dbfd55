"""The patterns of Amazon EventBridge, because people bring them: a JSON object in the shape of the
event, with lists of what its values may be. Plain module.

Fields beside each other must all hold, of a list one is enough; below a list of objects they must
hold of one object (pattern_tree.py). Where the hub's rules for values differ from Amazon's, the
hub's hold (docs/languages.md, "EventBridge").
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from eventhub.base import limits
from eventhub.base.errors import BodyNotFilterable, InvalidField, UnknownField
from registrations.filters.ast import (
    And,
    Compare,
    Comparison,
    Const,
    Exists,
    In,
    Node,
    Not,
    Or,
    Path,
    Scalar,
    Text,
    TextTest,
)
from registrations.filters.bounds import bounded
from registrations.filters.errors import FilterTooLarge
from registrations.filters.pattern_tree import All, Field, OneOf, Tree, node_of
from registrations.filters.wildcard import wildcard_parts

ENVELOPE = {
    "source": "source",
    "detail-type": "type",
    "domain": "domain",
    "id": "id",
    "time": "time",
    "version": "version",
}
DETAIL, OR = "detail", "$or"
FIELDS = (*ENVELOPE, DETAIL, OR)
_FIELD_CHARS = 300  # of a place in an error
_TESTS = ("prefix", "suffix", "wildcard")
_LOWER, _UPPER = (">", ">="), ("<", "<=")
_REFUSED = {
    "equals-ignore-case": "Texts are compared as they are, because small and large letters differ "
    "by language; name the spellings in the list.",
    "cidr": "An address is a text to a filter; take a prefix that ends at a dot, as in "
    '{"prefix": "10.1."}.',
}


class Leaf(NamedTuple):
    """A path of the event, and where in the pattern it is asked for."""

    path: Path
    field: str


def parse_eventbridge(pattern: dict[str, Any]) -> Node:
    """The tree of a pattern.

    Raises InvalidField and UnknownField with the place as a dotted path, FilterTooLarge.
    """
    tree = _object(pattern, (), within=False)
    try:
        node = node_of(tree)
        bounded(node)
    except FilterTooLarge as error:
        if "depth_max" in error.details:
            error.field = _shown(_deepest(pattern))
        raise
    return node


def _object(fields: Any, place: tuple[str, ...], *, within: bool) -> Tree:
    """All of an object; `within` the detail, else at the top."""
    where = ".".join(place) or None
    if not isinstance(fields, dict):
        raise InvalidField("Here an object is wanted, of names and what they may be.", field=where)
    if not fields:
        message = "An empty object asks for nothing; leave it out, or use pairs for every event."
        raise InvalidField(message, field=where)
    if len(place) > 2 * limits.FILTER_DEPTH_MAX:  # a step may be no form of the filter
        raise FilterTooLarge(field=_shown(place), depth_max=limits.FILTER_DEPTH_MAX)
    return All(tuple(_field(name, one, place, within=within) for name, one in fields.items()))


def _field(name: str, value: Any, outer: tuple[str, ...], *, within: bool) -> Tree:
    place = (*outer, name)
    if name == OR:
        return _or(value, place, within=within)
    if within:
        return _attribute(value, place)
    if name == DETAIL:
        return _object(value, place, within=True)
    field = ".".join(place)
    if name in ("body", "body_base64"):
        raise BodyNotFilterable(field=field)
    if name not in ENVELOPE:
        message = f"A pattern names {', '.join(FIELDS)}; attributes of the event are in `detail`."
        raise UnknownField(message, field=field)
    return Field((), _leaf(Leaf(Path(ENVELOPE[name], "envelope"), field), value))


def _or(value: Any, place: tuple[str, ...], *, within: bool) -> Tree:
    if not isinstance(value, list) or len(value) < 2:
        raise InvalidField("`$or` is a list of two objects at least.", field=".".join(place))
    nodes = (_object(one, (*place, str(number)), within=within) for number, one in enumerate(value))
    return OneOf(tuple(nodes))


def _attribute(value: Any, place: tuple[str, ...]) -> Tree:
    if isinstance(value, dict):
        return _object(value, place, within=True)
    steps = _steps(place)
    if len(steps) > 1 and any("." in step for step in steps):
        message = "A name inside an object has no dot; write the objects in each other."
        raise InvalidField(message, field=".".join(place))
    path = ".".join(steps)
    if len(path) > limits.PATH_CHARS_MAX:
        raise FilterTooLarge(field=_shown(place), path_chars_max=limits.PATH_CHARS_MAX)
    return _alternatives(tuple(steps), Leaf(Path(path), ".".join(place)), value)


def _alternatives(steps: tuple[str, ...], leaf: Leaf, wanted: Any) -> Tree:
    """What an attribute may be. That it is not there is said of the whole event, and so apart from
    the rest if it is in an object.
    """
    node = _leaf(leaf, wanted)
    parts = node.items if isinstance(node, Or) else (node,)
    absent = [part for part in parts if part == Not(Exists(leaf.path))]
    if len(steps) == 1 or not absent:
        return Field(steps, node)
    there = [part for part in parts if part not in absent]
    missing = Field(steps, absent[0], is_absent=True)
    return OneOf((Field(steps, _any(there)), missing)) if there else missing


def _steps(place: tuple[str, ...]) -> list[str]:
    """The names of attributes in a place: without `detail`, and without `$or` and its numbers."""
    steps = list(place)
    while OR in steps:
        at = steps.index(OR)
        del steps[at : at + 2]
    return steps[1:]


def _leaf(leaf: Leaf, wanted: Any) -> Node:
    if not isinstance(wanted, list) or not wanted:
        message = 'What a field may be stands in a list, as in ["online", {"prefix": "off"}].'
        raise InvalidField(message, field=leaf.field)
    nodes = [_matcher(leaf, one) for one in wanted if isinstance(one, dict)]
    values = [_const(leaf, one) for one in wanted if not isinstance(one, dict)]
    if values:
        nodes.insert(0, _equal(leaf.path, values))
    return _any(nodes)


def _deepest(pattern: Any) -> tuple[str, ...]:
    """Where in a pattern most stands in each other."""
    found: tuple[str, ...] = ()
    waiting: list[tuple[Any, tuple[str, ...]]] = [(pattern, ())]
    while waiting:
        value, place = waiting.pop()
        found = max(found, place, key=len)
        if isinstance(value, dict):
            waiting += [(one, (*place, name)) for name, one in value.items()]
        elif isinstance(value, list) and place[-1] == OR:
            waiting += [(one, (*place, str(at))) for at, one in enumerate(value)]
    return found


def _shown(place: tuple[str, ...]) -> str:
    """A place as an error may repeat it."""
    field = ".".join(place)
    return field if len(field) <= _FIELD_CHARS else f"{field[:_FIELD_CHARS]}…"


def _any(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Or(tuple(nodes))


def _equal(path: Path, values: list[Const]) -> Node:
    return In(path, tuple(values)) if len(values) > 1 else Compare("=", path, values[0])


def _const(leaf: Leaf, value: Any) -> Const:
    if isinstance(value, list | dict):
        message = "Here a text, a number, true, false or null is wanted."
        raise InvalidField(message, field=leaf.field)
    return Const(cast(Scalar, value))


def _matcher(leaf: Leaf, matcher: dict[str, Any]) -> Node:
    """One of a list, as in `{"prefix": "x"}`."""
    name, argument = _only(leaf, matcher, _MATCHERS)
    return _MATCHERS[name](Leaf(leaf.path, f"{leaf.field}.{name}"), name, argument)


def _only(leaf: Leaf, matcher: dict[str, Any], known: Any) -> tuple[str, Any]:
    """The one name of an object, and what stands with it."""
    for name in matcher:
        if name in _REFUSED:
            raise InvalidField(_REFUSED[name], field=f"{leaf.field}.{name}")
        if name not in known:
            message = f"Here one of {', '.join(known)} is wanted."
            raise UnknownField(message, field=f"{leaf.field}.{name}")
    if len(matcher) != 1:
        message = "Each object in the list has one name; put several into objects of their own."
        raise InvalidField(message, field=leaf.field)
    return next(iter(matcher.items()))


def _text(leaf: Leaf, name: str, argument: Any) -> Node:
    if isinstance(argument, dict) and "equals-ignore-case" in argument:
        raise InvalidField(_REFUSED["equals-ignore-case"], field=leaf.field)
    if not isinstance(argument, str):
        raise InvalidField(f"`{name}` is of a text.", field=leaf.field)
    if name == "wildcard":
        try:
            wildcard_parts(argument)
        except ValueError as error:
            raise InvalidField(str(error), field=leaf.field) from error
    return Text(cast(TextTest, name), leaf.path, argument)


def _anything_but(leaf: Leaf, _: str, argument: Any) -> Node:
    """The path is there, and none of its values is one of those."""
    if isinstance(argument, dict):
        name, text = _only(leaf, argument, _TESTS)
        inner = Leaf(leaf.path, f"{leaf.field}.{name}")
        refused = _any([_text(inner, name, one) for one in _listed(inner, text)])
    else:
        values = _listed(leaf, argument)
        refused = _equal(leaf.path, [_const(leaf, value) for value in values])
    return And((Exists(leaf.path), Not(refused)))


def _listed(leaf: Leaf, argument: Any) -> list[Any]:
    values = argument if isinstance(argument, list) else [argument]
    if not values:
        raise InvalidField("An empty list leaves nothing out.", field=leaf.field)
    return values


def _numeric(leaf: Leaf, _: str, argument: Any) -> Node:
    if not isinstance(argument, list) or len(argument) not in (2, 4):
        message = '`numeric` is a list as ["=", 5] or [">", 0, "<=", 5].'
        raise InvalidField(message, field=leaf.field)
    signs, numbers = argument[::2], argument[1::2]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
        raise InvalidField("`numeric` compares with numbers.", field=leaf.field)
    if any(sign not in ("=", *_LOWER, *_UPPER) for sign in signs):
        raise InvalidField("`numeric` knows = < <= > >= alone.", field=leaf.field)
    if len(signs) == 2 and {sign in _LOWER for sign in signs} != {True, False}:
        raise InvalidField("Of two bounds one is > or >=, one < or <=.", field=leaf.field)
    if len(signs) == 2 and "=" in signs:
        raise InvalidField("`=` in `numeric` stands alone.", field=leaf.field)
    bounds = [
        Compare(cast(Comparison, sign), leaf.path, Const(number))
        for sign, number in zip(signs, numbers, strict=True)
    ]
    return bounds[0] if len(bounds) == 1 else And(tuple(bounds))


def _exists(leaf: Leaf, _: str, argument: Any) -> Node:
    if not isinstance(argument, bool):
        raise InvalidField("`exists` is true or false.", field=leaf.field)
    return Exists(leaf.path) if argument else Not(Exists(leaf.path))


_MATCHERS: dict[str, Callable[[Leaf, str, Any], Node]] = {
    **dict.fromkeys(_TESTS, _text),
    "anything-but": _anything_but,
    "numeric": _numeric,
    "exists": _exists,
}
