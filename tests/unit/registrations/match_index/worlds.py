"""Matchers over match indexes for the comparisons: each engine, indexes that are built anew all the
time, hashes of a few bits, several shards.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from eventhub.event.envelope import Event
from registrations.filters.evaluate import TypeHierarchy, no_supertypes
from registrations.match_index.engines.available import ENGINES, new_engine
from registrations.match_index.format.builder import Entry, Plan, build
from registrations.match_index.format.columns import Gathering
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.index import Base, open_base
from registrations.matching.index import IndexMatcher, IndexOptions
from registrations.matching.matcher import Matcher
from registrations.matching.spec import Spec
from registrations.matching.strategies import MatcherFactory
from tests.unit.registrations.matching.programs import Add, Remove, Step

OFTEN = IndexOptions(first=5, least=5, share=0.5)  # built anew after a few changes
names = [*ENGINES]


def indexed(engine: str, options: IndexOptions = OFTEN) -> MatcherFactory:
    """A strategy whose base is built anew after a few changes."""

    def make(hierarchy: TypeHierarchy = no_supertypes) -> Matcher:
        return IndexMatcher(hierarchy, options._replace(engine=engine))

    return make


class Still(NamedTuple):
    """Registrations as they stand at one moment, and events that come then."""

    specs: dict[int, Spec]
    events: list[Event]


def moments(steps: Iterable[Step], every: int = 400) -> Iterator[Still]:
    """The registrations of a program every so many steps, and the events since the last time."""
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
    """Some tests of the programs are none that a language can say."""
    try:
        Gathering().add(0, (spec,), {})
    except NotIndexable:
        return False
    return True


def built(root: Path, specs: dict[int, Spec], plan: Plan = Plan()) -> Base:  # noqa: B008
    entries = (Entry(id, (spec,)) for id, spec in specs.items())
    build(root, entries, plan._replace(durable=False))
    return open_base(root)


def found(
    base: Base, engine: str, events: list[Event], hierarchy: TypeHierarchy
) -> list[list[int]]:
    """What the engine alone says of each event, ids in order."""
    engines = [new_engine(engine, shard, hierarchy) for shard in base.shards]
    return [sorted(id for one in engines for id in one.match(event)) for event in events]


def shuffled(specs: dict[int, Spec]) -> dict[int, Spec]:
    order = [*specs]
    Random(7).shuffle(order)
    return {id: specs[id] for id in order}


def answers(base: Base, engine: str, event: Event) -> list[int]:
    """What the engine says of one event where types have none above them."""
    return sorted(
        id for shard in base.shards for id in new_engine(engine, shard, no_supertypes).match(event)
    )


def files(root: Path) -> dict[str, bytes]:
    """All that an index has on disk."""
    paths = [path for path in root.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}
