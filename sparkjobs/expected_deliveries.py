"""The endpoints to which an event must be delivered, recomputed on executors with the product's own
matcher over indexes that the job has built (matchers.py). Spark module.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.event.audience import may_see
from eventhub.event.envelope import Event
from eventhub.event.filterable import filterable
from registrations.match_index.engines.available import AUTO, new_engine
from registrations.match_index.format.index import open_base
from registrations.match_index.format.layout import EXTRA
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS
from registrations.matching.strategies import StreamStrategy
from registrations.matching.versions import (
    EffectRules,
    Recipients,
    SuspensionSpan,
    add_by_columns,
    add_versions,
    without_ended,
)
from sparkjobs.arrow_dataset import ds
from sparkjobs.matchers import InMemoryVersions, matcher_folder, read_names
from sparkjobs.segment_files import read_rows
from sparkjobs.tables import CLIENTS, SUSPENSIONS
from sparkjobs.type_hierarchy import types_of_zone

_MATCHERS_OPEN_MAX = 16  # streams per worker; each maps a few files
_DECLARED_US = int(limits.AUDIT_DECLARED_S * 1_000_000)
_CLOCKS_US = int(limits.AUDIT_CLOCKS_S * 1_000_000)


class ExecutorPaths(NamedTuple):
    """The run's folders, as executors see them, and the time of its inputs."""

    inputs: str
    work: str
    now_us: int

    def matcher(self, stream_id: int) -> Path:
        """Return the folder of a stream's matcher."""
        return matcher_folder(self.work, stream_id)

    def may_have_expired(self, event: Event) -> bool:
        """Return whether some machine's clock may have passed the event's expiry."""
        return bool(event.expires_at_us) and event.expires_at_us <= self.now_us + _CLOCKS_US


class StreamInZone(NamedTuple):
    """A stream, with the zone whose types and clients apply to it."""

    stream_id: int
    zone_id: int


class Doubt:
    """Reasons why a matching event need not have been delivered to an endpoint."""

    EXPIRES = "expires"  # expected only if it was matched before it expired
    GROUPS = "groups"  # it has an audience: expected if groups were then as they are now
    OTHER_GROUPS = "other groups"  # expected only if they were different
    TYPES = "types"  # depends on what the matcher knew of the event's type
    LATER_TYPES = "later types"  # expected only if it was matched after the type was declared
    REGISTRATIONS = "registrations"  # expected, but for an unknown subset of registrations


class ExpectedDelivery(NamedTuple):
    """One event that must be delivered to one endpoint."""

    endpoint_id: int
    registrations: list[int]  # ascending
    doubt: str | None


class DeliveryMatcher:
    """The matcher of one stream's events to endpoints. Not thread-safe."""

    def __init__(self, paths: ExecutorPaths, stream: StreamInZone) -> None:
        """Open the matcher's files. Raises IndexAbsent, OSError."""
        root = paths.matcher(stream.stream_id)
        self._may_have_expired = paths.may_have_expired
        hierarchy = self._types = types_of_zone(paths.inputs, stream.zone_id)
        self._shards = [
            (new_engine(AUTO, shard, hierarchy), _columns(shard))
            for shard in open_base(root).shards
        ]
        self._names = read_names(root)
        self._memory = InMemoryVersions(root, StreamStrategy(hierarchy=hierarchy).new())
        self._suspensions = suspensions_of(paths.inputs, stream.stream_id)
        self._groups: Callable[[], dict[str, frozenset[str]]] = lambda: _groups(
            paths.inputs, stream.zone_id
        )

    def load(self, first: int, last: int) -> None:
        """Load what events of these sequences need; `expected` is exact for no others. Raises
        OSError.
        """
        self._memory.load(first, last)

    @property
    def loaded(self) -> Iterable[int]:
        """The ids of the versions in memory: those that no index contains."""
        return self._memory.versions.keys()

    def expected(self, event: Event, sequence: int, appended_us: int) -> list[ExpectedDelivery]:
        """Return the event's expected deliveries, unordered; `load` must have covered the sequence.
        Raises IndexDamaged.
        """
        found = self._expected(event, sequence)
        declared_us = self._types.declared_us(event)
        if declared_us is None or appended_us >= declared_us + _DECLARED_US:
            return found
        with self._types.undeclared():
            before = self._expected(event, sequence)
        return [
            *_combine(
                before, found, Doubt.LATER_TYPES if appended_us < declared_us else Doubt.TYPES
            )
        ]

    def _expected(self, event: Event, sequence: int) -> list[ExpectedDelivery]:
        doubt = Doubt.EXPIRES if self._may_have_expired(event) else None
        if not event.audience:
            found = self._match(event, sequence, _no_groups)
            return [ExpectedDelivery(*each, doubt) for each in found.items()]
        groups = self._groups()
        now = self._match(event, sequence, lambda client: groups.get(client, frozenset()))
        ever = self._match(event._replace(audience=()), sequence, _no_groups)
        return [
            ExpectedDelivery(
                endpoint, found, Doubt.GROUPS if endpoint in now else Doubt.OTHER_GROUPS
            )
            for endpoint, found in ever.items()
        ]

    def _match(
        self, event: Event, sequence: int, groups_of: Callable[[str], frozenset[str]]
    ) -> dict[int, list[int]]:
        recipients = Recipients({}, {}, set())
        event = filterable(event)
        rules = EffectRules({}, self._suspensions, groups_of)
        add_versions(self._memory.match(event), event, sequence, rules, recipients)
        for engine, columns in self._shards:
            positions = engine.match(event, positions=True).tolist()
            if event.destinations or event.audience:
                positions = [
                    position
                    for position in positions
                    if self._sees(event, columns, position, rules)
                ]
            add_by_columns(
                without_ended(positions, columns, rules, sequence), columns, sequence, recipients
            )
        recipients.sort()
        return recipients.endpoints

    def _sees(
        self, event: Event, columns: "_ShardColumns", position: int, rules: EffectRules
    ) -> bool:
        name = self._names[columns.client[position]]
        return may_see(event, name, rules.groups_of(name))


def _combine(
    before: list[ExpectedDelivery], since: list[ExpectedDelivery], later: str
) -> Iterator[ExpectedDelivery]:
    """Yield the union of the deliveries expected before and since the event's type was declared.

    `later`: the doubt about deliveries that only the second list contains.
    """
    first = {each.endpoint_id: each for each in before}
    for each in since:
        other = first.pop(each.endpoint_id, None)
        if other is None:
            yield each._replace(doubt=each.doubt or later)
        elif other == each or each.doubt in (Doubt.GROUPS, Doubt.OTHER_GROUPS):
            yield each
        else:
            registrations = sorted({*each.registrations, *other.registrations})
            doubt = Doubt.TYPES if each.doubt else Doubt.REGISTRATIONS
            yield each._replace(registrations=registrations, doubt=doubt)
    for each in first.values():
        yield each._replace(doubt=each.doubt or Doubt.TYPES)


class _ShardColumns(NamedTuple):
    """The mapped columns of one shard's versions, by dense position."""

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
def matcher_of(paths: ExecutorPaths, stream: StreamInZone) -> DeliveryMatcher | None:
    """Return this worker's matcher of a stream, opened on first use; None if the stream has no
    callbacks.
    """
    return DeliveryMatcher(paths, stream) if paths.matcher(stream.stream_id).exists() else None


def _no_groups(client: str) -> frozenset[str]:
    return frozenset()


def suspensions_of(inputs: str, stream_id: int) -> dict[int, tuple[SuspensionSpan, ...]]:
    """Return the suspensions of a stream's registration groups, by group id."""
    found: dict[int, tuple[SuspensionSpan, ...]] = {}
    where = ds.field("stream_id") == stream_id
    for row in read_rows(inputs, "suspensions", SUSPENSIONS, where):
        one = SuspensionSpan(row["since"], row["until"])
        found[row["group_id"]] = (*found.get(row["group_id"], ()), one)
    return found


@lru_cache(maxsize=_MATCHERS_OPEN_MAX)
def _groups(inputs: str, zone_id: int) -> dict[str, frozenset[str]]:
    """Return the current groups of a zone's clients; only events with an audience need them."""
    rows = read_rows(inputs, "clients", CLIENTS, ds.field("zone_id") == zone_id)
    rows.sort(key=itemgetter("id"))  # a name belongs to the newest client that has it
    return {row["name"]: frozenset(row["groups"]) for row in rows}
