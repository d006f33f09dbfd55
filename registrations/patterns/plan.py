"""A pattern made ready to run: its elements numbered, its parts as nodes that are searched, its
actions. Plain module.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Path
from registrations.patterns.actions import Effect, effects_of
from registrations.patterns.ast import (
    AssignAction,
    Combined,
    Do,
    Element,
    NotifyAction,
    Part,
    Pattern,
    Where,
    elements_of,
)
from registrations.patterns.checks import actions_of, may_be_empty
from registrations.patterns.new_events import NewEventValues
from registrations.patterns.search import (
    BothNode,
    ButNotNode,
    DoNode,
    EitherNode,
    ElementNode,
    PairNode,
    SearchNode,
    SequenceNode,
    ThenNode,
    WhereNode,
)
from registrations.patterns.values import PatternCondition, ReadValue


class WayStep(NamedTuple):
    """One node on the way from the whole pattern to a part: the node, and which side of it leads
    there.
    """

    node: SearchNode
    is_right: bool


class ActivePart(NamedTuple):
    """A part inside of the pattern with actions that run when it matches."""

    number: int
    node: DoNode
    way: tuple[WayStep, ...]
    effects: tuple[Effect, ...]


@dataclass
class PlannedPart:
    """A part and its node, for introspection."""

    part: Part
    node: SearchNode
    inner: tuple["PlannedPart", ...]


@dataclass
class Plan:
    """A pattern as the engine runs it.

    `within_us`, `last`: the window. `last_given`: whether the pattern states it. `components`: for
    each element, the components of its events that conditions and actions read. `parts`: with
    actions of their own, inner ones first. `effects`: of the whole pattern.
    """

    pattern: Pattern
    elements: tuple[Element, ...]
    within_us: int
    last: int
    last_given: bool
    root: SearchNode
    tree: PlannedPart
    parts: tuple[ActivePart, ...]
    effects: tuple[Effect, ...]
    components: tuple[tuple[Path, ...], ...] = field(default=())


def plan_of(pattern: Pattern) -> Plan:
    """Make a pattern ready to run; it has passed the checks of the parser."""
    elements = elements_of(pattern.part)
    names = tuple(one.variable or f"${index}" for index, one in enumerate(elements, 1))
    builder = _Builder(names)
    tree = builder.planned(pattern.part)
    within_us = pattern.within_us or limits.PATTERN_WITHIN_S_DEFAULT * 1_000_000
    window = within_us, pattern.last or limits.PATTERN_LAST_DEFAULT, pattern.last is not None
    effects = tuple(effect for node in _spine(tree) for effect in builder.effects.get(node, ()))
    if not any(not isinstance(action, AssignAction) for action in actions_of(pattern.part)):
        effects = effects_of((NotifyAction(),))
    parts = [*_active(tree, (), builder.effects, whole=True)]
    numbered = tuple(part._replace(number=number) for number, part in enumerate(parts))
    components = tuple(builder.components(name) for name in names)
    return Plan(pattern, elements, *window, tree.node, tree, numbered, effects, components)


class _Builder:
    """The nodes of a pattern, and what they read."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.effects: dict[SearchNode, tuple[Effect, ...]] = {}
        self._names = names
        self._next = 0
        self._reads: set[ReadValue] = set()

    def components(self, variable: str) -> tuple[Path, ...]:
        """Return the components that are read of a variable."""
        found = (one.component for one in self._reads if one.variable == variable)
        return tuple(sorted({path for path in found if path is not None}, key=str))

    def planned(self, part: Part) -> PlannedPart:
        """Build the nodes of a part; its elements are numbered in the order of the text."""
        match part:
            case Element():
                return PlannedPart(part, self._element(part), ())
            case Combined():
                left, right = self.planned(part.left), self.planned(part.right)
                if isinstance(part.left, Combined) and isinstance(left.node, PairNode):
                    left.node.in_row = part.left.operator == part.operator
                return PlannedPart(part, _pair(part, left.node, right.node), (left, right))
            case Where(inner, condition):
                within = self.planned(inner)
                test = PatternCondition(condition)
                self._reads.update(test.reads)
                return PlannedPart(part, WhereNode(within.node, test), (within,))
        within = self.planned(part.part)
        node = self._do(part, within.node)
        return PlannedPart(part, node, (within,))

    def _element(self, part: Element) -> SearchNode:
        index = self._next
        self._next += 1
        if part.is_sequence:
            return SequenceNode(index, part, self._names[index])
        return ElementNode(index, self._names[index])

    def _do(self, part: Do, inner: SearchNode) -> DoNode:
        assigned = tuple(
            NewEventValues(action.event, action.variable)
            for action in part.actions
            if isinstance(action, AssignAction)
        )
        node = DoNode(inner, assigned)
        effects = effects_of(part.actions)
        for values in (*(form.values for form in assigned), *(one.values for one in effects)):
            self._reads.update(read for _, value in values for read in value.reads)
        self.effects[node] = effects
        return node


def _pair(part: Combined, left: SearchNode, right: SearchNode) -> SearchNode:
    match part.operator:
        case "&&":
            return BothNode(left, right)
        case "||":
            return EitherNode(left, right)
        case "butnot":
            return ButNotNode(left, right)
    empty = may_be_empty(part.left), may_be_empty(part.right)
    return ThenNode(left, right, left_empty=empty[0], right_empty=empty[1])


def _spine(tree: PlannedPart) -> list[SearchNode]:
    """Return the nodes of actions that are the pattern's as a whole, the inner ones first."""
    found = []
    while isinstance(tree.part, Do):
        found.append(tree.node)
        (tree,) = tree.inner
    return found[::-1]


def _active(
    tree: PlannedPart,
    way: tuple[WayStep, ...],
    effects: dict[SearchNode, tuple[Effect, ...]],
    *,
    whole: bool = False,
) -> Iterator[ActivePart]:
    for index, inner in enumerate(tree.inner):
        step = WayStep(tree.node, index == 1)
        yield from _active(inner, (*way, step), effects, whole=whole and isinstance(tree.part, Do))
    if isinstance(tree.node, DoNode) and not whole and effects[tree.node]:
        yield ActivePart(0, tree.node, way, effects[tree.node])
