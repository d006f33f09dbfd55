"""The tree of an EventBridge pattern, by the steps of its fields, and its conversion to a filter.
Plain module.

Fields below one list of objects must match the same object. The rule is that of event-ruler, by
which Amazon EventBridge matches: of each list that fields share, one member has to satisfy all of
them, also across `$or`. A test that a field is absent applies to the whole event.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from eventhub.base import limits
from registrations.filters.ast import And, Compare, Exists, In, Node, Not, Or, Path, Text, Within
from registrations.filters.errors import FilterTooLarge

Steps = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PatternField:
    """A test of a field, with its full path. `steps`: the path through objects; empty for the
    envelope. `is_absent`: the test is that the field does not exist.
    """

    steps: Steps
    node: Node
    is_absent: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    items: tuple["Tree", ...]


Tree = PatternField | AllOf | AnyOf


def node_of(tree: Tree) -> Node:
    """Convert a pattern to a filter. Raises FilterTooLarge as soon as it exceeds a limit.

    Alternatives that test the same object as their siblings are distributed over these, so that one
    `within` has all tests of the object.
    """
    return _NodeBuilder().node(tree, 1)


class _NodeBuilder:
    """The builder of one filter. Where alternatives are distributed, their siblings multiply."""

    def __init__(self) -> None:
        self._parts = 0  # a lower bound

    def node(self, tree: Tree, product: int) -> Node:
        """Build the filter of a tree. `product`: the alternatives distributed so far."""
        items = _together(tree)
        joined = _first_joined(items)
        if joined is None:
            return self._together(items, product)
        others = tuple(one for one in items if one is not joined)
        count = product * len(joined.items)
        if count > limits.FILTER_PRODUCT_MAX:
            raise FilterTooLarge(alternatives_max=limits.FILTER_ALTERNATIVES_MAX)
        return Or(tuple(self.node(AllOf((*others, one)), count) for one in joined.items))

    def _together(self, items: tuple[PatternField | AnyOf, ...], product: int) -> Node:
        self._parts += len(items)
        if self._parts > limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(parts_max=limits.FILTER_PARTS_MAX)
        fields = [item for item in items if isinstance(item, PatternField)]
        alternatives = [item for item in items if isinstance(item, AnyOf)]
        several = [
            Or(tuple(self.node(one, product) for one in item.items)) for item in alternatives
        ]
        return _all([*_of_fields(fields, 0), *several])


def _first_joined(items: tuple[PatternField | AnyOf, ...]) -> AnyOf | None:
    """Return the first alternatives that test the same object as a sibling."""
    firsts = [_firsts(item) for item in items]
    looked = Counter(name for each in firsts for name in each)
    for item, names in zip(items, firsts, strict=True):
        if isinstance(item, AnyOf) and any(looked[name] > 1 for name in names):
            return item
    return None


def _together(tree: Tree) -> tuple[PatternField | AnyOf, ...]:
    """Return the items that must all hold, with nested `AllOf` flattened."""
    if isinstance(tree, AllOf):
        return tuple(one for item in tree.items for one in _together(item))
    return (tree,)


def _firsts(tree: Tree) -> set[str]:
    """Return the attributes whose objects a pattern tests."""
    if isinstance(tree, PatternField):
        return {tree.steps[0]} if len(tree.steps) > 1 else set()
    return {name for item in tree.items for name in _firsts(item)}


def _of_fields(fields: Iterable[PatternField], depth: int) -> list[Node]:
    """Build the tests of fields that must all hold. Their paths begin after `depth` steps."""
    groups: dict[object, list[PatternField]] = {}
    for number, field in enumerate(fields):
        is_inside = len(field.steps) > depth + 1 and not field.is_absent
        groups.setdefault(field.steps[depth] if is_inside else number, []).append(field)
    return [_of_group(group, depth) for group in groups.values()]


def _of_group(fields: list[PatternField], depth: int) -> Node:
    """Build the test of fields in one object. A single test of one field needs no `within`."""
    first = fields[0]
    if len(fields) == 1 and (len(first.steps) <= depth + 1 or _is_one_test(first)):
        return _beginning(first.node, depth)
    inner = depth + 1
    while len({field.steps[: inner + 1] for field in fields}) == 1 < len(first.steps) - inner:
        inner += 1
    return Within(Path(".".join(first.steps[depth:inner])), _all(_of_fields(fields, inner)))


def _is_one_test(field: PatternField) -> bool:
    """Return whether one value decides the test, so that it may be of any object."""
    parts = field.node.items if isinstance(field.node, Or) else (field.node,)
    return field.is_absent or all(isinstance(part, Compare | In | Text | Exists) for part in parts)


def _beginning(node: Node, depth: int) -> Node:
    """Remove the first `depth` steps from the paths of a test."""
    if not depth:
        return node
    match node:
        case And(items):
            return And(tuple(_beginning(item, depth) for item in items))
        case Or(items):
            return Or(tuple(_beginning(item, depth) for item in items))
        case Not(item):
            return Not(_beginning(item, depth))
        case Compare(_, Path() as path):
            return replace(node, left=_shorter(path, depth))
        case In(path) | Text(_, path) | Exists(path):
            return replace(node, path=_shorter(path, depth))
    raise TypeError(node)


def _shorter(path: Path, depth: int) -> Path:
    return Path(".".join(path.name.split(".")[depth:]))


def _all(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else And(tuple(nodes))
