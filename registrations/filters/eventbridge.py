"""The event patterns of Amazon EventBridge: a JSON object in the shape of the event, with lists of
allowed values. Plain module.

All fields of an object must match, of a list one entry; below a list of objects they must match the
same object (pattern_tree.py). Where the hub's rules for values differ from Amazon's, the hub's
apply (docs/languages.md, "EventBridge").
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from eventhub.base import limits
from eventhub.base.errors import BodyNotFilterable, InvalidField, UnknownField
from eventhub.event.filterable import DATA
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
from registrations.filters.pattern_tree import AllOf, AnyOf, PatternField, Tree, node_of
from registrations.filters.text_tests import range_of
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
# fields of Amazon's events that are attributes here, and the body
ATTRIBUTES = ("account", "region", "resources", DATA)
FIELDS = (*ENVELOPE, *ATTRIBUTES, DETAIL, OR)
_FIELD_CHARS = 300  # of a field path in an error
_IGNORING = "equals-ignore-case"
_TESTS = ("prefix", "suffix", "wildcard", _IGNORING)  # also in `anything-but`
_LOWER, _UPPER = (">", ">="), ("<", "<=")


class Leaf(NamedTuple):
    """A path of the event, and the field of the pattern that tests it."""

    path: Path
    field: str


def parse_eventbridge(pattern: dict[str, Any]) -> Node:
    """Parse a pattern into a tree.

    Raises InvalidField and UnknownField with the field as a dotted path, FilterTooLarge.
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


def _object(fields: Any, field_path: tuple[str, ...], *, within: bool) -> Tree:
    """Parse an object, `within` the detail or at the top."""
    where = ".".join(field_path) or None
    if not isinstance(fields, dict):
        raise InvalidField("Expected an object of field names and allowed values.", field=where)
    if not fields:
        message = "The object is empty; omit it, or use pairs to match every event."
        raise InvalidField(message, field=where)
    if len(field_path) > 2 * limits.FILTER_DEPTH_MAX:  # not every step becomes a form
        raise FilterTooLarge(field=_shown(field_path), depth_max=limits.FILTER_DEPTH_MAX)
    return AllOf(
        tuple(_field(name, one, field_path, within=within) for name, one in fields.items())
    )


def _field(name: str, value: Any, outer: tuple[str, ...], *, within: bool) -> Tree:
    field_path = (*outer, name)
    if name == OR:
        return _or(value, field_path, within=within)
    if within:
        return _attribute(value, field_path)
    if name == DETAIL:
        return _object(value, field_path, within=True)
    if name in ATTRIBUTES:
        return _attribute(value, field_path)
    field = ".".join(field_path)
    if name in ("body", "body_base64"):
        raise BodyNotFilterable(field=field)
    if name not in ENVELOPE:
        message = f"A pattern has {', '.join(FIELDS)}; attributes of the event are in `detail`."
        raise UnknownField(message, field=field)
    return PatternField((), _leaf(Leaf(Path(ENVELOPE[name], "envelope"), field), value))


def _or(value: Any, field_path: tuple[str, ...], *, within: bool) -> Tree:
    if not isinstance(value, list) or len(value) < 2:
        raise InvalidField("`$or` is a list of at least two objects.", field=".".join(field_path))
    nodes = (
        _object(one, (*field_path, str(number)), within=within) for number, one in enumerate(value)
    )
    return AnyOf(tuple(nodes))


def _attribute(value: Any, field_path: tuple[str, ...]) -> Tree:
    if isinstance(value, dict):
        return _object(value, field_path, within=True)
    steps = _steps(field_path)
    if len(steps) > 1 and any("." in step for step in steps):
        message = "A name inside an object has no dot; nest the objects."
        raise InvalidField(message, field=".".join(field_path))
    path = ".".join(steps)
    if len(path) > limits.PATH_CHARS_MAX:
        raise FilterTooLarge(field=_shown(field_path), path_chars_max=limits.PATH_CHARS_MAX)
    return _alternatives(tuple(steps), Leaf(Path(path), ".".join(field_path)), value)


def _alternatives(steps: tuple[str, ...], leaf: Leaf, allowed: Any) -> Tree:
    """Return the tests of an attribute. A test that it is absent applies to the whole event, so it
    is separate from the others if the attribute is in an object.
    """
    node = _leaf(leaf, allowed)
    parts = node.items if isinstance(node, Or) else (node,)
    absent = [part for part in parts if part == Not(Exists(leaf.path))]
    if len(steps) == 1 or not absent:
        return PatternField(steps, node)
    there = [part for part in parts if part not in absent]
    missing = PatternField(steps, absent[0], is_absent=True)
    return AnyOf((PatternField(steps, _any(there)), missing)) if there else missing


def _steps(field_path: tuple[str, ...]) -> list[str]:
    """Return the attribute names in a path: without `detail`, and without `$or` and its indexes;
    those of the body begin with `data`, for instance.
    """
    steps = list(field_path)
    while OR in steps:
        at = steps.index(OR)
        del steps[at : at + 2]
    return steps if steps[0] in ATTRIBUTES else steps[1:]


def _leaf(leaf: Leaf, allowed: Any) -> Node:
    if not isinstance(allowed, list) or not allowed:
        message = 'Allowed values are in a list, as in ["online", {"prefix": "off"}].'
        raise InvalidField(message, field=leaf.field)
    nodes = [_matcher(leaf, one) for one in allowed if isinstance(one, dict)]
    values = [_const(leaf, one) for one in allowed if not isinstance(one, dict)]
    if values:
        nodes.insert(0, _equal(leaf.path, values))
    return _any(nodes)


def _deepest(pattern: Any) -> tuple[str, ...]:
    """Return the path of the deepest nesting in a pattern."""
    found: tuple[str, ...] = ()
    waiting: list[tuple[Any, tuple[str, ...]]] = [(pattern, ())]
    while waiting:
        value, field_path = waiting.pop()
        found = max(found, field_path, key=len)
        if isinstance(value, dict):
            waiting += [(one, (*field_path, name)) for name, one in value.items()]
        elif isinstance(value, list) and field_path[-1] == OR:
            waiting += [(one, (*field_path, str(at))) for at, one in enumerate(value)]
    return found


def _shown(field_path: tuple[str, ...]) -> str:
    """Return a field path, cut for an error."""
    field = ".".join(field_path)
    return field if len(field) <= _FIELD_CHARS else f"{field[:_FIELD_CHARS]}…"


def _any(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Or(tuple(nodes))


def _equal(path: Path, values: list[Const]) -> Node:
    return In(path, tuple(values)) if len(values) > 1 else Compare("=", path, values[0])


def _const(leaf: Leaf, value: Any) -> Const:
    if isinstance(value, list | dict):
        message = "Expected a text, a number, true, false or null."
        raise InvalidField(message, field=leaf.field)
    return Const(cast(Scalar, value))


def _matcher(leaf: Leaf, matcher: dict[str, Any]) -> Node:
    """Parse one matcher of a list, as in `{"prefix": "x"}`."""
    name, argument = _only(leaf, matcher, _MATCHERS)
    return _MATCHERS[name](Leaf(leaf.path, f"{leaf.field}.{name}"), name, argument)


def _only(leaf: Leaf, matcher: dict[str, Any], known: Any) -> tuple[str, Any]:
    """Return the only name of an object and its value."""
    for name in matcher:
        if name not in known:
            message = f"Expected one of {', '.join(known)}."
            raise UnknownField(message, field=f"{leaf.field}.{name}")
    if len(matcher) != 1:
        message = "Each object in the list has one name; use one object for each."
        raise InvalidField(message, field=leaf.field)
    return next(iter(matcher.items()))


def _text(leaf: Leaf, name: str, argument: Any) -> Node:
    if isinstance(argument, dict) and name in ("prefix", "suffix"):
        _, argument = _only(leaf, argument, (_IGNORING,))
        leaf, name = Leaf(leaf.path, f"{leaf.field}.{_IGNORING}"), f"{name}-ignore-case"
    if not isinstance(argument, str):
        raise InvalidField(f"`{leaf.field.rpartition('.')[2]}` takes a text.", field=leaf.field)
    if name in ("wildcard", "cidr"):
        try:
            (wildcard_parts if name == "wildcard" else range_of)(argument)
        except ValueError as error:
            raise InvalidField(str(error), field=leaf.field) from error
    return Text(cast(TextTest, name), leaf.path, argument)


def _anything_but(leaf: Leaf, _: str, argument: Any) -> Node:
    """Parse `anything-but`: the path exists, and none of its values is in the list."""
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
        raise InvalidField("The list is empty; list at least one value.", field=leaf.field)
    return values


def _numeric(leaf: Leaf, _: str, argument: Any) -> Node:
    if not isinstance(argument, list) or len(argument) not in (2, 4):
        message = '`numeric` takes a list, as in ["=", 5] or [">", 0, "<=", 5].'
        raise InvalidField(message, field=leaf.field)
    signs, numbers = argument[::2], argument[1::2]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
        raise InvalidField("`numeric` compares numbers only.", field=leaf.field)
    if any(sign not in ("=", *_LOWER, *_UPPER) for sign in signs):
        raise InvalidField("`numeric` takes = < <= > and >= only.", field=leaf.field)
    if len(signs) == 2 and {sign in _LOWER for sign in signs} != {True, False}:
        raise InvalidField("Of two bounds, one is > or >=, the other < or <=.", field=leaf.field)
    if len(signs) == 2 and "=" in signs:
        raise InvalidField("`=` cannot be combined with another bound.", field=leaf.field)
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
    **dict.fromkeys((*_TESTS, "cidr"), _text),
    "anything-but": _anything_but,
    "numeric": _numeric,
    "exists": _exists,
}
