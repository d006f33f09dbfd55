"""Matchers over match indexes for the comparisons: each engine, indexes that are rebuilt all the
time, hashes of a few bits, several shards.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import ENGINES, new_engine
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.columns import EntryCollector
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.index import Base, open_base
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.matcher import Matcher
from registrations.matching.spec import Spec
from registrations.matching.strategies import MatcherFactory
from tests.unit.registrations.matching.programs import Add, Remove, Step

OFTEN = IndexOptions(first=5, least=5, share=0.5)  # rebuilt after a few changes
names = [*ENGINES]


def indexed(engine: str, options: IndexOptions = OFTEN) -> MatcherFactory:
    """Return a strategy whose base is rebuilt after a few changes."""

    def make(hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
        return IndexMatcher(hierarchy, options._replace(engine=engine))

    return make


class Still(NamedTuple):
    """The registrations at one moment, and the events that follow."""

    specs: dict[int, Spec]
    events: list[Event]


def moments(steps: Iterable[Step], every: int = 400) -> Iterator[Still]:
    """Yield the registrations of a program every so many steps, and the events since."""
    specs: dict[int, Spec] = {}
    events: list[Event] = []
    for number, step in enumerate(steps, 1):
        if isinstance(step, Add):
            specs[step.id] = step.spec
        elif isinstance(step, Remove):
            specs.pop(step.id, None)
        else:
            events.append(step)
        if number % every == 0:
            yield Still({id: spec for id, spec in specs.items() if storable(spec)}, events)
            events = []


def storable(spec: Spec) -> bool:
    """Return whether an index can store a spec; some tests of the programs are not expressible."""
    try:
        EntryCollector().add(0, (spec,), {})
    except NotIndexable:
        return False
    return True


def built(root: Path, specs: dict[int, Spec], plan: EpochPlan = EpochPlan()) -> Base:  # noqa: B008
    entries = (IndexEntry(id, (spec,)) for id, spec in specs.items())
    build(root, entries, plan._replace(durable=False))
    return open_base(root)


def found(
    base: Base, engine: str, events: list[Event], hierarchy: TypeHierarchy
) -> list[list[int]]:
    """Return the ids that the engine alone finds for each event, sorted."""
    engines = [new_engine(engine, shard, hierarchy) for shard in base.shards]
    return [sorted(id for one in engines for id in one.match(event)) for event in events]


def shuffled(specs: dict[int, Spec]) -> dict[int, Spec]:
    order = [*specs]
    Random(7).shuffle(order)
    return {id: specs[id] for id in order}


def answers(base: Base, engine: str, event: Event) -> list[int]:
    """Return the ids that the engine finds for one event without supertypes."""
    return sorted(
        id for shard in base.shards for id in new_engine(engine, shard, no_supertypes).match(event)
    )


def files(root: Path) -> dict[str, bytes]:
    """Return all files of an index."""
    paths = [path for path in root.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}
