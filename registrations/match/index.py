"""Strategy `index`: most registrations in a match index on disk, mapped and never changed; what
changed since in a matcher in memory; what is gone, marked. Plain.

The three are one answer for every event. `compact` builds a new index of what lives, beside, and
takes it in the place of all three at once; `swap` takes one that was built elsewhere.
"""

import tempfile
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from eventhub import limits
from eventhub.event.envelope import Event
from registrations.lang.evaluate import Kin, only_itself
from registrations.match.access import AccessMatcher
from registrations.match.alternatives import FilterMatcher
from registrations.match.base.base import Base, Place, open_base
from registrations.match.base.builder import Plan, build_columns
from registrations.match.base.columns import Columns, Gathering
from registrations.match.base.decode import columns_of
from registrations.match.base.engine import Engine
from registrations.match.base.engines import AUTO, new_engine
from registrations.match.base.errors import NotIndexable
from registrations.match.base.layout import EXTRA
from registrations.match.matcher import Counters
from registrations.match.spec import Spec, Specs


class Options(NamedTuple):
    """How an index is kept. `inline`: it is built anew whenever that is due, and whoever changes it
    waits; otherwise its owner asks `due` and calls `freeze`, `build_frozen` and `thaw`.
    """

    engine: str = AUTO
    inline: bool = True
    first: int = limits.INDEX_DELTA_MIN  # changes before an index is built at all
    least: int = limits.INDEX_DELTA_MIN  # and before it is built anew,
    share: float | None = None  # ... if these are as large a part of it; None: as limits say


class Frozen(NamedTuple):
    """What lived at one moment, for a builder elsewhere. `tick`: that of the last change."""

    base: Base | None
    gone: frozenset[Place]
    specs: Mapping[int, Specs]
    sequence: int
    tick: int


class Change(NamedTuple):
    """When an id came, went or became another: by its owner's clock, and by the matcher's own."""

    sequence: int
    tick: int


class State(NamedTuple):
    """What is used at the moment, and why (for people)."""

    engine: str
    base: int  # ids in the index
    delta: int  # filters in memory
    buried: int  # ids of the index that are gone or are in memory
    why: str


class IndexMatcher:
    """A base, a delta and what is gone. It takes single specs, as every strategy, and whole filters
    by `put`. `sequence` is set by its owner before changes are applied: where in its feed they are.

    Concurrency: one task owns it, as any matcher; only `build_frozen` may run elsewhere.
    """

    def __init__(self, kin: Kin = only_itself, options: Options = Options()) -> None:  # noqa: B008
        self.sequence = 0
        self._kin = kin
        self._options = options
        self._tick = 0
        self._postponed = 0  # changes to wait for after a build that failed
        self._watched = not options.inline  # an index may come that has what is gone by now
        self._spent = Counters()
        self._refused: set[int] = set()  # no index can hold them
        self._engines: list[Engine] = []
        self._delta = FilterMatcher(AccessMatcher(kin))
        self._base: Base | None = None
        self._specs: dict[int, Specs] = {}
        self._changed: dict[int, Change] = {}
        self._buried: dict[int, list[Place]] = {}

    @property
    def counters(self) -> Counters:
        """All work so far: of the bases that were, of the present one, and of the delta."""
        parts = [self._spent, self._delta.counters, *(engine.counters for engine in self._engines)]
        return summed(parts)

    def add(self, id: int, spec: Spec) -> None:
        self.put(id, (spec,))

    def put(self, id: int, specs: Specs) -> None:
        """Take a filter in, in the place of what is under its number."""
        self._bury(id)
        self._delta.add(id, specs)
        self._specs[id] = specs
        self._changed_now(id)

    def remove(self, id: int) -> None:
        if id not in self._specs and not self._bury(id):
            return
        self._delta.remove(id)
        self._specs.pop(id, None)
        self._refused.discard(id)
        if self._watched or id in self._buried:
            self._changed_now(id)
        else:
            del self._changed[id]

    def match(self, event: Event) -> list[int]:
        due = self._delta.match(event) if self._specs else []
        for engine in self._engines:
            due += engine.match(event).tolist()
        return due

    def match_ids(self, event: Event) -> memoryview:
        """The same as a buffer of 64-bit integers: no object for each number."""
        recent = self._delta.match(event) if self._specs else []
        if not recent and len(self._engines) == 1:
            return self._engines[0].match(event)
        found = array("q", recent)
        for engine in self._engines:
            found.frombytes(engine.match(event).cast("B"))
        return memoryview(found)

    def __len__(self) -> int:
        return (0 if self._base is None else len(self._base)) - len(self._buried) + len(self._delta)

    # --- building anew ---

    def due(self) -> bool:
        """Whether enough changed for a new index to be worth its while."""
        changed = len(self._changed) - len(self._refused)
        _, inline, first, least, share = self._options
        if share is None:
            share = limits.INDEX_INLINE_SHARE if inline else limits.INDEX_DELTA_SHARE_MAX
        wanted = first if self._base is None else max(least, share * len(self._base))
        return changed >= max(wanted, self._postponed)

    def compact(self, root: Path | None = None) -> None:
        """A new index of what lives, here and now; without a root, its own. Raises OSError."""
        frozen = self.freeze()
        if root is not None:
            self.thaw(frozen, *build_frozen(root, frozen))
            return
        with tempfile.TemporaryDirectory(prefix="eventhub-index-") as folder:
            # mapped, it needs no name, and it ends with this process
            self.thaw(frozen, *build_frozen(Path(folder), frozen, durable=False))

    def freeze(self) -> Frozen:
        """What `build_frozen` needs; later changes do not alter it."""
        self._watched = True
        gone = frozenset(place for places in self._buried.values() for place in places)
        specs = dict(self._specs)
        return Frozen(self._base, gone, specs, self.sequence, self._tick)

    def thaw(self, frozen: Frozen, base: Base, refused: frozenset[int]) -> None:
        """Take the index that was built of `frozen`; what changed since then stays in memory."""
        later = {id: at for id, at in self._changed.items() if at.tick > frozen.tick}
        self._refused = {id for id in refused if id not in later and id in self._specs}
        kept = {id: at for id, at in self._changed.items() if id in later or id in self._refused}
        self._spent.rebuilds += 1
        self._hold(base, kept)

    def swap(self, base: Base) -> None:
        """Take an index that was built elsewhere, of all that had changed up to its sequence.
        Raises ValueError if what changed since is not known: it is older than the present one, or
        this matcher builds its own.
        """
        if not self._watched:
            raise ValueError("this matcher builds its index itself: Options(inline=False)")
        through = base.manifest.built_through_sequence
        if through is None:
            raise ValueError("this index does not say up to where it was built")
        held = None if self._base is None else self._base.manifest.built_through_sequence
        if held is not None and through < held:
            raise ValueError(f"this index was built up to {through}, the present one up to {held}")
        kept = {id: at for id, at in self._changed.items() if at.sequence > through}
        self._refused &= kept.keys()
        self._hold(base, kept)

    def state(self) -> State:
        """For people: which engine answers, from what, and why."""
        names = {engine.name for engine in self._engines}
        base = 0 if self._base is None else len(self._base)
        why = "an index was built" if names else f"fewer than {self._options.first:,} registrations"
        if self._postponed:
            why += ", and the last build failed"
        engine = ", ".join(sorted(names)) or "access"
        return State(engine, base, len(self._delta), len(self._buried), why)

    def _hold(self, base: Base, changed: dict[int, Change]) -> None:
        """The one place where what is asked changes: made aside, then taken at once."""
        delta = FilterMatcher(AccessMatcher(self._kin))
        kept = {id: self._specs[id] for id in changed if id in self._specs}
        for id, filter in kept.items():
            delta.add(id, filter)
        engines = [new_engine(self._options.engine, shard, self._kin) for shard in base.shards]
        self._spent = self.counters
        self._base, self._engines, self._delta = base, engines, delta
        self._specs, self._changed, self._buried = kept, dict(changed), {}
        self._postponed, self._watched = 0, not self._options.inline
        for id in changed:
            self._bury(id)

    def _bury(self, id: int) -> bool:
        """True if it was in the base and found until now."""
        if self._base is None or id in self._buried:
            return False
        places = self._base.places_of(id)
        for place in places:
            self._engines[place.shard].bury(place.dense)
        if places:
            self._buried[id] = places
        return bool(places)

    def _changed_now(self, id: int) -> None:
        self._tick += 1
        self._changed[id] = Change(self.sequence, self._tick)
        if self._options.inline and self.due():
            self._compact_or_wait()

    def _compact_or_wait(self) -> None:
        """A disk that is full costs speed, not matches."""
        try:
            self.compact()
        except OSError:
            self._postponed = 2 * len(self._changed)


def build_frozen(
    root: Path, frozen: Frozen, *, durable: bool = True
) -> tuple[Base, frozenset[int]]:
    """An index of what lived, and the ids that it cannot hold. May run in any thread or process.
    Raises OSError.
    """
    extra = extra_of(frozen.base)
    refused: set[int] = set()
    plan = Plan(built_through_sequence=frozen.sequence, extra=extra, durable=durable)
    build_columns(root, living(frozen, extra, refused), plan)
    return open_base(root), frozenset(refused)


def living(frozen: Frozen, extra: tuple[str, ...], refused: set[int]) -> Iterable[Columns]:
    """The columns of each shard without what is gone; with the last comes what was in memory."""
    shards = [] if frozen.base is None else frozen.base.shards
    last = Gathering(extra)
    for id, specs in frozen.specs.items():
        try:
            last.add(id, specs, dict.fromkeys(extra, 0))
        except NotIndexable:
            refused.add(id)
    for number, shard in enumerate(shards):
        columns = columns_of(shard, [at.dense for at in frozen.gone if at.shard == number])
        if number < len(shards) - 1:
            yield columns
        else:
            last.take(columns)
    yield last.columns()


def extra_of(base: Base | None) -> tuple[str, ...]:
    """The columns that an index has beside its ids."""
    if base is None or not base.shards:
        return ()
    names = base.shards[0].views
    return tuple(sorted(name.removeprefix(EXTRA) for name in names if name.startswith(EXTRA)))


def summed(parts: list[Counters]) -> Counters:
    return Counters(
        sum(part.lookups for part in parts),
        sum(part.touched for part in parts),
        sum(part.evaluated for part in parts),
        sum(part.compared for part in parts),
        sum(part.shadowed for part in parts),
        sum(part.rebuilds for part in parts),
    )
