"""To which endpoints an event is owed, recomputed on executors with the product's own matcher and
what the job has built for it (matchers.py). Spark module.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow.dataset as ds

from eventhub.base import limits
from eventhub.event.audience import may_see
from eventhub.event.envelope import Event
from registrations.match_index.engines.available import AUTO, new_engine
from registrations.match_index.format.index import open_base
from registrations.match_index.format.layout import EXTRA
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS
from registrations.matching.stream_matcher import Matching
from registrations.matching.versions import (
    HoldRules,
    Recipients,
    SuspensionSpan,
    add_by_columns,
    add_versions,
    without_ended,
)
from sparkjobs.matchers import InMemoryVersions, matcher_folder, read_names
from sparkjobs.segment_reader import read_rows
from sparkjobs.tables import CLIENTS, SUSPENSIONS
from sparkjobs.type_hierarchy import types_of_zone

_MATCHERS_OPEN_MAX = 16  # streams of one worker; a few mapped files each
_DECLARED_US = int(limits.AUDIT_DECLARED_S * 1_000_000)
_CLOCKS_US = int(limits.AUDIT_CLOCKS_S * 1_000_000)


class ExecutorPaths(NamedTuple):
    """The run's folders, as executors see them, and the moment of its inputs."""

    inputs: str
    work: str
    now_us: int

    def root(self, stream_id: int) -> Path:
        """Of a stream's matcher."""
        return matcher_folder(self.work, stream_id)

    def may_have_expired(self, event: Event) -> bool:
        """Before somebody looked at it, by whatever clock."""
        return bool(event.expires_at_us) and event.expires_at_us <= self.now_us + _CLOCKS_US


class StreamInZone(NamedTuple):
    """Whose matcher."""

    stream_id: int
    zone_id: int


class Doubt:
    """Why an event may not be owed to an endpoint although it matches."""

    EXPIRES = "expires"  # it is owed only if it was matched before
    GROUPS = "groups"  # it has an audience: owed if the groups then were those of now
    OTHER_GROUPS = "other groups"  # owed only if they were not
    TYPES = "types"  # it is owed by what was known of its type when it was matched
    LATER_TYPES = "later types"  # owed only if that was after the type was declared
    REGISTRATIONS = "registrations"  # it is owed in any case, for some of these


class ExpectedDelivery(NamedTuple):
    """One event owed to one endpoint."""

    endpoint_id: int
    registrations: list[int]  # ascending
    doubt: str | None


class DeliveryMatcher:
    """What one stream's events are owed to. One task at a time uses it."""

    def __init__(self, where: ExecutorPaths, of: StreamInZone) -> None:
        """Raises IndexAbsent, OSError."""
        root = where.root(of.stream_id)
        self._may_have_expired = where.may_have_expired
        hierarchy = self._hierarchy = types_of_zone(where.inputs, of.zone_id)
        self._shards = [
            (new_engine(AUTO, shard, hierarchy), _columns(shard))
            for shard in open_base(root).shards
        ]
        self._names = read_names(root)
        self._memory = InMemoryVersions(root, Matching(hierarchy=hierarchy).new())
        self._suspensions = suspensions_of(where.inputs, of.stream_id)
        self._groups: Callable[[], dict[str, frozenset[str]]] = lambda: _groups(
            where.inputs, of.zone_id
        )

    def load(self, first: int, last: int) -> None:
        """Get ready for events of these sequences: `due` is exact for them and for no others.
        Raises OSError.
        """
        self._memory.load(first, last)

    @property
    def loaded(self) -> Iterable[int]:
        """The versions in memory, by id: those that no index has."""
        return self._memory.versions.keys()

    def due(self, event: Event, sequence: int, appended_us: int) -> list[ExpectedDelivery]:
        """In no order; `load` was called for the sequence. Raises IndexDamaged."""
        found = self._due(event, sequence)
        declared_us = self._hierarchy.declared_us(event)
        if declared_us is None or appended_us >= declared_us + _DECLARED_US:
            return found
        with self._hierarchy.alone():
            before = self._due(event, sequence)
        return [
            *_either(before, found, Doubt.LATER_TYPES if appended_us < declared_us else Doubt.TYPES)
        ]

    def _due(self, event: Event, sequence: int) -> list[ExpectedDelivery]:
        doubt = Doubt.EXPIRES if self._may_have_expired(event) else None
        if not event.audience:
            found = self._owed(event, sequence, _in_none)
            return [ExpectedDelivery(*each, doubt) for each in found.items()]
        groups = self._groups()
        now = self._owed(event, sequence, lambda client: groups.get(client, frozenset()))
        ever = self._owed(event._replace(audience=()), sequence, _in_none)
        return [
            ExpectedDelivery(
                endpoint, found, Doubt.GROUPS if endpoint in now else Doubt.OTHER_GROUPS
            )
            for endpoint, found in ever.items()
        ]

    def _owed(
        self, event: Event, sequence: int, groups_of: Callable[[str], frozenset[str]]
    ) -> dict[int, list[int]]:
        owed, rules = Recipients({}, {}), HoldRules({}, self._suspensions, groups_of)
        add_versions(self._memory.match(event), event, sequence, rules, owed)
        for engine, columns in self._shards:
            places = engine.match(event, places=True).tolist()
            if event.destinations or event.audience:
                places = [place for place in places if self._sees(event, columns, place, rules)]
            add_by_columns(without_ended(places, columns, rules, sequence), columns, sequence, owed)
        owed.sort()
        return owed.endpoints

    def _sees(self, event: Event, columns: "_ShardColumns", place: int, rules: HoldRules) -> bool:
        name = self._names[columns.client[place]]
        return may_see(event, name, rules.groups_of(name))


def _either(
    before: list[ExpectedDelivery], since: list[ExpectedDelivery], later: str
) -> Iterator[ExpectedDelivery]:
    """What is owed by one of two answers. `later`: the doubt about what is owed by the second."""
    first = {due.endpoint_id: due for due in before}
    for due in since:
        other = first.pop(due.endpoint_id, None)
        if other is None:
            yield due._replace(doubt=due.doubt or later)
        elif other == due or due.doubt in (Doubt.GROUPS, Doubt.OTHER_GROUPS):
            yield due
        else:
            found = sorted({*due.registrations, *other.registrations})
            doubt = Doubt.TYPES if due.doubt else Doubt.REGISTRATIONS
            yield due._replace(registrations=found, doubt=doubt)
    for due in first.values():
        yield due._replace(doubt=due.doubt or Doubt.TYPES)


class _ShardColumns(NamedTuple):
    """Bounds of the versions of one shard, by dense place, mapped."""

    client: memoryview
    endpoint: memoryview
    group: memoryview
    registration: memoryview
    report: memoryview
    since: memoryview
    until: memoryview
    ids: memoryview


def _columns(shard: Shard) -> _ShardColumns:
    views = {name: shard.views[EXTRA + name] for name in COLUMNS}
    return _ShardColumns(**views, ids=shard.views["ids"])


@lru_cache(maxsize=_MATCHERS_OPEN_MAX)
def matcher_of(where: ExecutorPaths, of: StreamInZone) -> DeliveryMatcher | None:
    """This worker's, made when it is first asked for; None where nothing is called back."""
    return DeliveryMatcher(where, of) if where.root(of.stream_id).exists() else None


def _in_none(client: str) -> frozenset[str]:
    return frozenset()


def suspensions_of(inputs: str, stream_id: int) -> dict[int, tuple[SuspensionSpan, ...]]:
    """Of a stream's groups of registrations, by group."""
    found: dict[int, tuple[SuspensionSpan, ...]] = {}
    chosen = ds.field("stream_id") == stream_id
    for row in read_rows(inputs, "suspensions", SUSPENSIONS, chosen):
        one = SuspensionSpan(row["since"], row["until"])
        found[row["group_id"]] = (*found.get(row["group_id"], ()), one)
    return found


@lru_cache(maxsize=_MATCHERS_OPEN_MAX)
def _groups(inputs: str, zone_id: int) -> dict[str, frozenset[str]]:
    """Of a zone's clients, as of now; only events with an audience ask."""
    rows = read_rows(inputs, "clients", CLIENTS, ds.field("zone_id") == zone_id)
    rows.sort(key=itemgetter("id"))  # the last of a name has it now
    return {row["name"]: frozenset(row["groups"]) for row in rows}
