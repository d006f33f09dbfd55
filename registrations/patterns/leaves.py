"""The distinct filters of the elements of many patterns, in one index: each event is matched once,
however many patterns have a filter (RDY-47). Plain module.
"""

from eventhub.event.envelope import Event
from registrations.filters.ast import Node
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.normal import NormalForm, normal, printed_parts
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.matcher import Counters
from registrations.matching.memory_matcher import MemoryMatcher
from registrations.matching.spec import specs_of_form

LeafKey = tuple[tuple[str, ...], ...]  # equal for filters with the same normal form


class ElementFilter:
    """A filter, as it was written first, and how many elements have it."""

    __slots__ = ("key", "node", "number", "users")

    def __init__(self, number: int, key: LeafKey, node: Node) -> None:
        self.number = number
        self.key = key
        self.node = node
        self.users = 0


class LeafIndex:
    """The filters of a group's patterns. Engines of one group share it, so that an event that is
    given to each of them is matched once.

    Concurrency: none. One task owns it.
    """

    def __init__(self, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self._matcher = FilterMatcher(MemoryMatcher(hierarchy))
        self._leaves: dict[LeafKey, ElementFilter] = {}
        self._by_node: dict[Node, ElementFilter] = {}  # to find most without their normal form
        self._by_number: dict[int, ElementFilter] = {}
        self._made = 0
        self._event: Event | None = None  # the last one, ...
        self._found: list[int] = []  # ... and what it matched
        self.matched = 0  # events

    def __len__(self) -> int:
        """Return the number of distinct filters."""
        return len(self._leaves)

    @property
    def counters(self) -> Counters:
        """The work of the matcher."""
        return self._matcher.counters

    def add(self, node: Node) -> int:
        """Add a filter, or another use of an equal one; return its number. Raises
        FilterTooLarge.
        """
        leaf = self._by_node.get(node) or self._leaf(node)
        leaf.users += 1
        return leaf.number

    def remove(self, number: int) -> None:
        """Remove one use of a filter; with the last one the filter."""
        leaf = self._by_number[number]
        leaf.users -= 1
        if not leaf.users:
            del self._by_number[number], self._leaves[leaf.key], self._by_node[leaf.node]
            self._matcher.remove(number)
            self._event = None

    def match(self, event: Event) -> list[int]:
        """Return the numbers of the filters that the event passes, in any order."""
        if event is not self._event:
            self.matched += 1
            self._found = self._matcher.match(event)
            self._event = event
        return self._found

    def _leaf(self, node: Node) -> ElementFilter:
        """Return the filter with the same normal form, a new one if there is none."""
        form = normal(node)
        key = _key_of(form)
        leaf = self._leaves.get(key)
        if leaf is None:
            leaf = ElementFilter(self._made, key, node)
            self._matcher.add(leaf.number, specs_of_form(form))
            self._leaves[key] = self._by_number[self._made] = self._by_node[node] = leaf
            self._made += 1
            self._event = None
        return leaf


def _key_of(form: NormalForm) -> LeafKey:
    return tuple(tuple(text for text, _ in parts) for parts in printed_parts(form))
