"""The matching of one stream's events: its strategy and type hierarchy. Plain module.

A stream chooses its strategy (docs/matching.md); all have the same results, so it can change at any
time.
"""

from typing import NamedTuple

from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.memory_matcher import MemoryMatcher
from registrations.matching.strategies import new_matcher

AUTO = "auto"
INDEXED = frozenset({AUTO, "index"})  # strategies that use a stream's match index on disk


class Matching(NamedTuple):
    """The strategy of a stream by name, and its type hierarchy."""

    strategy: str = AUTO
    hierarchy: TypeHierarchy = no_supertypes

    @property
    def is_indexed(self) -> bool:
        """Whether the stream's match index, if it has one, has most registrations."""
        return self.strategy in INDEXED

    def new(self) -> FilterMatcher:
        """Return an empty matcher for what the index lacks. Raises ValueError for its strategy."""
        if self.is_indexed:
            return FilterMatcher(MemoryMatcher(self.hierarchy))
        return FilterMatcher(new_matcher(self.strategy, self.hierarchy))
