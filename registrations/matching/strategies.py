"""The matching strategies by name (OIF-30). A stream chooses its strategy (docs/matching.md); all
have the same results, so it can change at any time. Plain module.
"""

from typing import NamedTuple, Protocol

from eventhub.base import limits
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.compile_matcher import CompileMatcher
from registrations.matching.counting import CountingMatcher
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.lattice import LatticeMatcher
from registrations.matching.matcher import Matcher
from registrations.matching.memo import MemoMatcher
from registrations.matching.memory_matcher import MemoryMatcher
from registrations.matching.rarest_pair import RarestPairMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.signature_matcher import SigMatcher

AUTO = "auto"
INDEXED = frozenset({AUTO, "index"})  # strategies that use a stream's match index on disk


class MatcherFactory(Protocol):
    """Builds an empty matcher; without `hierarchy` no type has supertypes."""

    def __call__(self, hierarchy: TypeHierarchy = no_supertypes) -> Matcher: ...


def auto(hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
    """Return a matcher that changes in place up to INDEX_AUTO_MIN registrations, then `index`."""
    return IndexMatcher(hierarchy, IndexOptions(first=limits.INDEX_AUTO_MIN))


STRATEGIES: dict[str, MatcherFactory] = {
    "access": RarestPairMatcher,  # each conjunction under its rarest pair
    "counting": CountingMatcher,  # SUN's counters, with traces
    "sig": SigMatcher,  # OIF: signatures before evaluation
    "memo": MemoMatcher,  # OIF: candidates cached by set of fields
    "lattice": LatticeMatcher,  # OIF: a lattice of signatures
    "compile": CompileMatcher,  # OIF: all subscriptions as one program
    "scan": ScanMatcher,  # the oracle
    "index": IndexMatcher,  # most of them on disk, mapped, with the fastest engine
    AUTO: auto,  # the default: `access` for equalities, indexes for the rest
}


def new_matcher(strategy: str = AUTO, hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
    """Return an empty matcher. Raises ValueError for an unknown strategy."""
    make = STRATEGIES.get(strategy)
    if make is None:
        raise ValueError(f"unknown strategy {strategy!r}; use one of {', '.join(STRATEGIES)}")
    return make(hierarchy)


class StreamStrategy(NamedTuple):
    """The strategy of a stream by name, and its type hierarchy."""

    strategy: str = AUTO
    hierarchy: TypeHierarchy = no_supertypes

    @property
    def is_indexed(self) -> bool:
        """Whether the stream's match index, if it has one, has most registrations."""
        return self.strategy in INDEXED

    def new(self) -> FilterMatcher:
        """Return an empty matcher for the registrations that are not in the stream's index; it
        never builds a large index itself. Raises ValueError for an unknown strategy.
        """
        if self.is_indexed:
            return FilterMatcher(MemoryMatcher(self.hierarchy))
        return FilterMatcher(new_matcher(self.strategy, self.hierarchy))
