"""The compiled engine of the match index, kernel.cpp, if it was built for this version of the
format. Plain module.
"""

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.filters.values import number_of
from registrations.match_index.engines.residual import Tests
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.layout import VERSION
from registrations.match_index.format.names import number_order
from registrations.match_index.format.shard import Shard
from registrations.matching.matcher import Counters

try:
    from registrations.match_index.engines.kernel import FORMAT, Kernel
except ImportError:  # it was not built, or for another Python
    IS_BUILT = False
else:
    IS_BUILT = FORMAT == VERSION

_APPLICATION_AT = Event._fields.index("application")


class CompiledEngine:
    """The compiled engine. Its counters have the meaning of those of PythonEngine."""

    name = "compiled"

    def __init__(self, shard: Shard, hierarchy: TypeHierarchy = no_supertypes) -> None:
        self._shard = shard
        self._counters = Counters()
        self._tests = tests = Tests(shard, hierarchy, self._counters)
        sections = {name: (at.offset, at.length) for name, at in shard.sections.items()}
        callables = (tests, hierarchy, number_order, number_of)
        head = shard.head._asdict()
        self._kernel = Kernel(shard.data, sections, head, *callables, _APPLICATION_AT)
        self._match = self._kernel.match

    @property
    def counters(self) -> Counters:
        self._counters.lookups = self._kernel.lookups
        self._counters.touched = self._kernel.touched
        return self._counters

    def match(self, event: Event, *, positions: bool = False) -> memoryview:
        try:
            return memoryview(self._match(event, positions)).cast("q")
        except IndexError as error:
            raise IndexDamaged(f"{self._shard.path.name} has an offset out of range.") from error
        finally:
            self._tests.end()

    def mark_removed(self, position: int) -> None:
        self._kernel.mark_removed(position)
