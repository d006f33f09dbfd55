"""How one stream's events are matched: by which strategy, and what is known of their types. Plain.

The strategy is a stream's own (docs/matching.md); all give the same, so another one may take over
at any moment.
"""

from typing import NamedTuple

from eventhub import limits
from registrations.lang.evaluate import Kin, only_itself
from registrations.match.alternatives import FilterMatcher
from registrations.match.index import IndexMatcher, Options
from registrations.match.strategies import new_matcher

AUTO = "auto"
_BESIDE = {  # strategies whose index their owner builds, beside what is matched meanwhile
    AUTO: Options(inline=False, first=limits.INDEX_AUTO_MIN),
    "index": Options(inline=False),
}


class Made(NamedTuple):
    """A matcher; with an index that its owner is to build whenever it is due, if it has one."""

    matcher: FilterMatcher
    indexed: IndexMatcher | None = None


class Matching(NamedTuple):
    """The strategy of a stream by name, and the kin of its events."""

    strategy: str = AUTO
    kin: Kin = only_itself

    def new(self) -> FilterMatcher:
        """An empty matcher, for few registrations. Raises ValueError if there is no such
        strategy.
        """
        return FilterMatcher(new_matcher(self.strategy, self.kin))

    def owned(self) -> Made:
        """The same for many: whoever has it does not wait while an index is built."""
        options = _BESIDE.get(self.strategy)
        if options is None:
            return Made(self.new())
        index = IndexMatcher(self.kin, options)
        return Made(FilterMatcher(index), index)
