"""How one stream's events are matched: by which strategy, and what is known of their types.
Plain module.

The strategy is a stream's own (docs/matching.md); all give the same, so another one may take over
at any moment.
"""

from typing import NamedTuple

from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.memory import MemoryMatcher
from registrations.matching.strategies import new_matcher

AUTO = "auto"
INDEXED = frozenset({AUTO, "index"})  # of these a stream's index is built on the disk


class Matching(NamedTuple):
    """The strategy of a stream by name, and the hierarchy of its events."""

    strategy: str = AUTO
    hierarchy: TypeHierarchy = no_supertypes

    @property
    def is_indexed(self) -> bool:
        """Whether a stream's index stands for most registrations, if it has one."""
        return self.strategy in INDEXED

    def new(self) -> FilterMatcher:
        """An empty matcher, for all that a stream's index does not stand for: nobody waits while it
        builds one. Raises ValueError if there is no such strategy.
        """
        if self.is_indexed:
            return FilterMatcher(MemoryMatcher(self.hierarchy))
        return FilterMatcher(new_matcher(self.strategy, self.hierarchy))
