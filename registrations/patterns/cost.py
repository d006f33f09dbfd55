"""The size of a pattern, and its cost for every event. Plain module."""

from typing import NamedTuple

from registrations.filters.normal import NormalForm, normal
from registrations.matching.cost import every_event_cost
from registrations.patterns.ast import Part, Pattern, elements_of, parts_of
from registrations.patterns.checks import actions_of


class PatternCost(NamedTuple):
    """The size of a pattern. `filters`: distinct ones; `every_event_cost`: of these together, in
    the units of a client's budget (registrations/matching/cost.py).
    """

    elements: int
    filters: int
    depth: int
    actions: int
    every_event_cost: int


def cost_of_pattern(pattern: Pattern) -> PatternCost:
    """Return the cost of a pattern."""
    elements = elements_of(pattern.part)
    forms: set[NormalForm] = {normal(one.node) for one in elements}
    actions = sum(1 for _ in actions_of(pattern.part))
    cost = sum(map(every_event_cost, forms))
    return PatternCost(len(elements), len(forms), _depth(pattern.part), actions, cost)


def _depth(part: Part) -> int:
    return 1 + max(map(_depth, parts_of(part)), default=0)
