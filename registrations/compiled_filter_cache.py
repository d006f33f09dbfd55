"""A cache of stored filters in compiled form, as matchers take them. Plain module."""

from collections import OrderedDict

from eventhub.base import limits
from registrations.filter_source import stored_filter
from registrations.matching.spec import Specs


class CompiledFilters:
    """An LRU cache of compiled filters, bounded by the total characters of their sources."""

    def __init__(self, chars_max: int) -> None:
        self.chars = 0
        self._chars_max = chars_max
        self._specs: OrderedDict[tuple[str, str], Specs] = OrderedDict()

    def __len__(self) -> int:
        return len(self._specs)

    def specs(self, language: str, filter_json: str) -> Specs:
        """Compile a stored filter, or return it from the cache. A long filter takes some 20 ms the
        first time. Raises what the language raises.
        """
        key = language, filter_json
        found = self._specs.get(key)
        if found is not None:
            self._specs.move_to_end(key)
            return found
        found = stored_filter(language, filter_json).specs()
        self._specs[key] = found
        self.chars += len(filter_json) + limits.COMPILED_FILTER_CHARS
        while self.chars > self._chars_max:
            (_, evicted), _ = self._specs.popitem(last=False)
            self.chars -= len(evicted) + limits.COMPILED_FILTER_CHARS
        return found


COMPILED_FILTERS = CompiledFilters(limits.COMPILED_CHARS_CACHED_MAX)  # of this process
