"""Stored filters in the form that matchers take, kept for who needs the same one next.
Plain module.
"""

from collections import OrderedDict

from eventhub.base import limits
from registrations.filter_source import stored_filter
from registrations.matching.spec import Specs


class Compiled:
    """What was asked for lately, as far as the texts are no longer than so many characters
    together; the one asked for last is the last to go.
    """

    def __init__(self, chars_max: int) -> None:
        self.chars = 0
        self._chars_max = chars_max
        self._specs: OrderedDict[tuple[str, str], Specs] = OrderedDict()

    def __len__(self) -> int:
        return len(self._specs)

    def specs(self, language: str, filter_json: str) -> Specs:
        """Of a filter as it is stored; a long one takes some 20 ms the first time. Raises what the
        language raises.
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
            (_, gone), _ = self._specs.popitem(last=False)
            self.chars -= len(gone) + limits.COMPILED_FILTER_CHARS
        return found


COMPILED = Compiled(limits.COMPILED_CHARS_CACHED_MAX)  # this process'
