"""The strategies of matching by name. Plain."""

from collections.abc import Callable

from registrations.match.access import AccessMatcher
from registrations.match.counting import CountingMatcher
from registrations.match.matcher import Matcher
from registrations.match.scan import ScanMatcher

STRATEGIES: dict[str, Callable[[], Matcher]] = {
    "access": AccessMatcher,  # the default: each conjunction under its rarest pair
    "counting": CountingMatcher,  # SUN's counters, readable and traced
    "scan": ScanMatcher,  # the oracle
}


def new_matcher(strategy: str = "access") -> Matcher:
    """An empty matcher. Raises ValueError if there is no such strategy."""
    make = STRATEGIES.get(strategy)
    if make is None:
        raise ValueError(f"no strategy {strategy!r}; known: {', '.join(STRATEGIES)}")
    return make()
