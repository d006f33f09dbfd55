"""The strategies of matching by name (OIF-30). Plain module."""

from typing import Protocol

from eventhub.base import limits
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.matching.access import AccessMatcher
from registrations.matching.compiled import CompileMatcher
from registrations.matching.counting import CountingMatcher
from registrations.matching.index import IndexMatcher, Options
from registrations.matching.lattice import LatticeMatcher
from registrations.matching.matcher import Matcher
from registrations.matching.memo import MemoMatcher
from registrations.matching.scan import ScanMatcher
from registrations.matching.sig import SigMatcher


class Make(Protocol):
    """Builds an empty matcher; without `hierarchy` no type has supertypes."""

    def __call__(self, hierarchy: TypeHierarchy = no_supertypes) -> Matcher: ...


def auto(hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
    """What changes in place while registrations are few, from INDEX_AUTO_MIN on `index`."""
    return IndexMatcher(hierarchy, Options(first=limits.INDEX_AUTO_MIN))


STRATEGIES: dict[str, Make] = {
    "access": AccessMatcher,  # each conjunction under its rarest pair
    "counting": CountingMatcher,  # SUN's counters, readable and traced
    "sig": SigMatcher,  # OIF's: signatures before evaluations,
    "memo": MemoMatcher,  # ... the same once for each set of fields,
    "lattice": LatticeMatcher,  # ... signatures by what they hold,
    "compile": CompileMatcher,  # ... and all subscriptions as one program
    "scan": ScanMatcher,  # the oracle
    "index": IndexMatcher,  # most of them on disk, mapped, with the fastest engine there is
    "auto": auto,  # the default: `access` for equalities, indexes for the rest
}


def new_matcher(strategy: str = "auto", hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
    """An empty matcher. Raises ValueError if there is no such strategy."""
    make = STRATEGIES.get(strategy)
    if make is None:
        raise ValueError(f"no strategy {strategy!r}; known: {', '.join(STRATEGIES)}")
    return make(hierarchy)
