"""The tests of a shard, parsed on first use. Plain module."""

from eventhub.base.errors import EventHubError
from eventhub.event.envelope import Event
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy, holds
from registrations.filters.event_values import EventValues
from registrations.filters.predicate import parse_predicate
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.names import text_of
from registrations.match_index.format.shard import Shard
from registrations.matching.matcher import Counters

_NOTHING = EventValues(Event("", "", {}))


class Tests:
    """The tests of a shard by number. Parsed tests are cached; the shard bounds their number."""

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy, counters: Counters) -> None:
        self._shard = shard
        self._hierarchy = hierarchy
        self._counters = counters
        self._nodes: dict[int, Node] = {}
        self._values = _NOTHING

    def __call__(self, number: int, event: Event) -> bool:
        """Evaluate a test for an event. Raises IndexDamaged for a text that no builder wrote."""
        node = self._nodes.get(number)
        if node is None:
            node = self._nodes[number] = self._parsed(number)
        self._counters.evaluated += 1
        if self._values.event is not event:
            self._values = EventValues(event)
        return holds(node, self._values, self._hierarchy)

    def end(self) -> None:
        """Drop the values of the matched event, which may change before its next match."""
        self._values = _NOTHING

    def _parsed(self, number: int) -> Node:
        try:
            return parse_predicate(text_of(self._shard.text("test_at", "tests", number)))
        except (EventHubError, IndexError, UnicodeDecodeError) as error:
            raise IndexDamaged(f"A test of {self._shard.path.name} cannot be read.") from error
