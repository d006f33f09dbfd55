"""Fields of a pattern that lie below one list of objects must hold of one of its objects: the tree
of a pattern by the steps of its fields, made into a filter. Plain module.

The rule is event-ruler's, by which Amazon EventBridge matches: of each list that fields have in
common, one member has to satisfy all of them, across `$or` as well. That a field is not there is
said of the whole event.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from eventhub.base import limits
from registrations.filters.ast import And, Compare, Exists, In, Node, Not, Or, Path, Text, Within
from registrations.filters.errors import FilterTooLarge

Steps = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """What a field may be, as a test of its whole path. `steps`: the way to it through objects;
    none of the envelope. `is_absent`: it must not be there.
    """

    steps: Steps
    node: Node
    is_absent: bool = False


@dataclass(frozen=True, slots=True)
class All:
    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    items: tuple["Tree", ...]


Tree = Field | All | OneOf


def node_of(tree: Tree) -> Node:
    """The filter that a pattern is. Raises FilterTooLarge, as soon as it is known to be.

    Alternatives that look into the same object as what stands beside them are joined with that,
    each by itself: then one object can be asked for all of it.
    """
    return _Making().node(tree, 1)


class _Making:
    """A filter while it is made. Where alternatives multiply, what stands beside them does."""

    def __init__(self) -> None:
        self._parts = 0  # that it has at least

    def node(self, tree: Tree, product: int) -> Node:
        """`product`: how many alternatives there are of those that were joined before."""
        items = _together(tree)
        joined = _first_joined(items)
        if joined is None:
            return self._together(items, product)
        others = tuple(one for one in items if one is not joined)
        count = product * len(joined.items)
        if count > limits.FILTER_PRODUCT_MAX:
            raise FilterTooLarge(alternatives_max=limits.FILTER_ALTERNATIVES_MAX)
        return Or(tuple(self.node(All((*others, one)), count) for one in joined.items))

    def _together(self, items: tuple[Field | OneOf, ...], product: int) -> Node:
        self._parts += len(items)
        if self._parts > limits.FILTER_PARTS_MAX:
            raise FilterTooLarge(parts_max=limits.FILTER_PARTS_MAX)
        fields = [item for item in items if isinstance(item, Field)]
        alternatives = [item for item in items if isinstance(item, OneOf)]
        several = [
            Or(tuple(self.node(one, product) for one in item.items)) for item in alternatives
        ]
        return _all([*_of_fields(fields, 0), *several])


def _first_joined(items: tuple[Field | OneOf, ...]) -> OneOf | None:
    """Alternatives that look into the same object as something beside them."""
    firsts = [_firsts(item) for item in items]
    looked = Counter(name for each in firsts for name in each)
    for item, names in zip(items, firsts, strict=True):
        if isinstance(item, OneOf) and any(looked[name] > 1 for name in names):
            return item
    return None


def _together(tree: Tree) -> tuple[Field | OneOf, ...]:
    """What must hold at once, without `All` in it."""
    if isinstance(tree, All):
        return tuple(one for item in tree.items for one in _together(item))
    return (tree,)


def _firsts(tree: Tree) -> set[str]:
    """The attributes into whose objects a pattern looks."""
    if isinstance(tree, Field):
        return {tree.steps[0]} if len(tree.steps) > 1 else set()
    return {name for item in tree.items for name in _firsts(item)}


def _of_fields(fields: Iterable[Field], depth: int) -> list[Node]:
    """Tests of fields that must hold at once. Their paths begin after `depth` steps."""
    groups: dict[object, list[Field]] = {}
    for number, field in enumerate(fields):
        is_inside = len(field.steps) > depth + 1 and not field.is_absent
        groups.setdefault(field.steps[depth] if is_inside else number, []).append(field)
    return [_of_group(group, depth) for group in groups.values()]


def _of_group(fields: list[Field], depth: int) -> Node:
    """Of fields in one object. One test of one field needs no object of its own."""
    first = fields[0]
    if len(fields) == 1 and (len(first.steps) <= depth + 1 or _is_one_test(first)):
        return _beginning(first.node, depth)
    inner = depth + 1
    while len({field.steps[: inner + 1] for field in fields}) == 1 < len(first.steps) - inner:
        inner += 1
    return Within(Path(".".join(first.steps[depth:inner])), _all(_of_fields(fields, inner)))


def _is_one_test(field: Field) -> bool:
    """Whether one value decides it, so that it does not matter of which object that is."""
    parts = field.node.items if isinstance(field.node, Or) else (field.node,)
    return field.is_absent or all(isinstance(part, Compare | In | Text | Exists) for part in parts)


def _beginning(node: Node, depth: int) -> Node:
    """The same test with its path shorter by some steps."""
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
