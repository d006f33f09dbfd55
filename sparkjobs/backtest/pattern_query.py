"""A back-test of a pattern: its parameters, and its engine with nothing but the pattern. Plain
module.
"""

import functools
from typing import NamedTuple

from eventhub.base import limits
from registrations.agents.program import AgentProgram
from registrations.pattern_groups.definition import PatternDefinition, Tree, parsed
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.patterns.ast import IncrementAction, Pattern
from registrations.patterns.checks import actions_of
from sparkjobs.backtest.reading import ReadScope
from sparkjobs.type_hierarchy import DeclaredType, ExportedHierarchy

PATTERN = 1  # its number in the engine


class PatternQuery(NamedTuple):
    """A back-test's pattern, scope and limits. Executors receive it."""

    language: str
    text: str
    once: bool
    streams: tuple[tuple[int, str], ...]  # ids and names
    system: int | None  # the id of the stream `system`, if it is among them
    zone: str
    types: tuple[DeclaredType, ...]  # of the zone
    sample_max: int
    scope: ReadScope
    stops_us: int = limits.INTEGER_MAX  # when tasks stop feeding their engines

    def tree(self) -> Tree:
        """Parse the pattern. Raises the errors of its language."""
        return _tree(PatternDefinition(self.language, self.text, self.once))

    def engine(self) -> HubEngine:
        """Return the engine of a group that has only this pattern, before the first event."""
        engine = HubEngine(ExportedHierarchy(self.types))
        engine.add(HubPattern(PATTERN, self.tree(), self.once))
        return engine

    @property
    def selects(self) -> bool:
        """Whether events that pass no filter of the pattern change nothing: in READY, and of agents
        that examine no recent events. Others count the most recent events, also those that they
        do not take.
        """
        tree = self.tree()
        return isinstance(tree, Pattern) or (isinstance(tree, AgentProgram) and not tree.recent)

    @property
    def spreads(self) -> bool:
        """Whether the keys of the pattern are independent of each other, so that several tasks can
        have some each: it has no counters, and does not end with its first match.
        """
        tree = self.tree()
        if not isinstance(tree, Pattern) or tree.per is None:
            return False
        counts = any(isinstance(one, IncrementAction) for one in actions_of(tree.part))
        return not (self.once or tree.once or counts)


@functools.lru_cache(maxsize=4)
def _tree(definition: PatternDefinition) -> Tree:
    return parsed(definition).tree
