"""The compiled engine of the match index, kernel.cpp, where it was built. Plain."""

from eventhub.event.envelope import Event
from registrations.lang.evaluate import Kin, only_itself
from registrations.lang.values import number_of
from registrations.match.base.errors import IndexDamaged
from registrations.match.base.names import number_order
from registrations.match.base.residual import Tests
from registrations.match.base.shard import Shard
from registrations.match.matcher import Counters

try:
    from registrations.match.base.kernel import Kernel
except ImportError:  # no compiler was there, or one for another Python
    IS_BUILT = False
else:
    IS_BUILT = True

_APPLICATION_AT = Event._fields.index("application")


class CompiledEngine:
    """Counters are those of the engine in Python."""

    name = "compiled"

    def __init__(self, shard: Shard, kin: Kin = only_itself) -> None:
        self._shard = shard
        self._counters = Counters()
        self._tests = tests = Tests(shard, kin, self._counters)
        sections = {name: (at.offset, at.length) for name, at in shard.sections.items()}
        callables = (tests, kin, number_order, number_of)
        head = shard.head._asdict()
        self._kernel = Kernel(shard.data, sections, head, *callables, _APPLICATION_AT)

    @property
    def counters(self) -> Counters:
        self._counters.lookups = self._kernel.lookups
        self._counters.touched = self._kernel.touched
        return self._counters

    def match(self, event: Event, *, places: bool = False) -> memoryview:
        try:
            return memoryview(self._kernel.match(event, places)).cast("q")
        except IndexError as error:
            raise IndexDamaged(f"{self._shard.path.name} leads outside of itself.") from error
        finally:
            self._tests.end()

    def bury(self, place: int) -> None:
        self._kernel.bury(place)
