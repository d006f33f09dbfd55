"""How many events of a stream were to be told to a client that listened for something, up to points
of the stream: counted on executors with the product's own matcher. Spark module.

An event that may have expired, whose audience asks for a client's groups, or whose type was
declared later, is in doubt: whether it was to be told depends on when it was looked at.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.dataset as ds
from google.protobuf.message import DecodeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.base import limits
from eventhub.event import protobuf_codec
from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import Event
from registrations.compiled import CompiledFilters
from registrations.matching.stream_matcher import Matching
from registrations.matching.versions import StreamVersion
from sparkjobs.expected_deliveries import ExecutorPaths, suspensions_of
from sparkjobs.segment_reader import NONE, SegmentFile, SegmentUnreadable, read_rows
from sparkjobs.tables import SYSTEM_ZONE, VERSIONS
from sparkjobs.type_hierarchy import types_of_zone

INTERESTS, POINTS = "told-wishes", "told-points"  # folders of the job's work
_DECLARED_US = int(limits.AUDIT_DECLARED_S * 1_000_000)
_INT, _TEXT = pa.int64(), pa.string()
# Who listened for what: one row for each client, stream and wish.
INTEREST = pa.schema(
    [
        ("stream_id", _INT),
        ("client_id", _INT),
        ("request_digest", _TEXT),
        ("mask", _INT),
        ("filter", _TEXT),
        ("registrations", pa.list_(_INT)),
        ("client", _TEXT),
        ("zone", _TEXT),
    ]
)
POINT = pa.schema(
    [("stream_id", _INT), ("client_id", _INT), ("request_digest", _TEXT), ("sequence", _INT)]
)
# Of one segment: its events up to a point in it; or `whole`, with its last sequence.
COUNTS = pa.schema(
    [
        *POINT,
        ("whole", pa.bool_()),
        ("sure", _INT),
        ("doubtful", _INT),
        ("unseen", _INT),  # sequences that could not be looked at
    ]
)


_SureAndDoubtful = tuple[list[int], list[int]]
_Sequences = np.ndarray[Any, Any]


class InterestedClient(NamedTuple):
    """A client."""

    id: int
    name: str
    zone: str | None  # on `system`: only this zone's events and the whole hub's are shown


class _Interest(NamedTuple):
    """A content that was listened for, and who did."""

    id: str
    mask: int
    askers: list[InterestedClient]
    registrations: tuple[int, ...]


def count_events(segments: DataFrame, where: ExecutorPaths, archive_url: str) -> DataFrame:
    """COUNTED, of segments with their stream's zone (`zone_id`)."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist(
                    [*count_segment(row, where, archive_url)], schema=COUNTS
                )

    return segments.mapInArrow(count, from_arrow_schema(COUNTS))


def count_segment(
    segment: dict[str, Any], where: ExecutorPaths, archive_url: str
) -> Iterator[dict[str, Any]]:
    """Rows of COUNTED of one segment. What cannot be read was not seen."""
    looking = _SegmentCount(segment, where)
    try:
        if segment["source"] != NONE:
            for batch in SegmentFile(segment, where.inputs, archive_url).batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    looking.look(*row)
    except SegmentUnreadable:
        looking.forget()
    first, last = segment["first"], segment["last"]
    points: dict[tuple[int, str], set[int]] = {}
    for point in _rows(where.work, POINTS, POINT, segment):
        if first <= point["sequence"] < last:
            whose = point["client_id"], point["request_digest"]
            points.setdefault(whose, set()).add(point["sequence"])
    for wish, asker, upto in looking.counts():
        key = {"stream_id": segment["stream_id"], "client_id": asker.id, "request_digest": wish.id}
        for at in (*points.get((asker.id, wish.id), ()), last):
            yield {**key, "sequence": at, "whole": at == last, **upto(at)}


class _SegmentCount:
    """What of a segment's events was wanted by whom."""

    def __init__(self, segment: dict[str, Any], where: ExecutorPaths) -> None:
        zone_id = segment["zone_id"]
        self._may_have_expired = where.may_have_expired
        hierarchy = self._hierarchy = types_of_zone(where.inputs, zone_id)
        self._system = zone_id == SYSTEM_ZONE
        self._filters, self._versions = (
            Matching(hierarchy=hierarchy).new(),
            Matching(hierarchy=hierarchy).new(),
        )
        self._by_version: dict[int, list[tuple[StreamVersion, int]]] = {}
        self._suspended = suspensions_of(where.inputs, segment["stream_id"])
        self.wishes = [*self._wishes(segment, where)]
        self._first = segment["first"]
        self.forget()

    def forget(self) -> None:
        """Nothing was seen. Of each wish are kept the sequences that were to be told to all who
        have it, and those in doubt; of each asker its own beside them.
        """
        self._seen: list[int] = []
        self._common: list[_SureAndDoubtful] = [([], []) for _ in self.wishes]
        self._own: dict[tuple[str, int], _SureAndDoubtful] = {}

    def _wishes(self, segment: dict[str, Any], where: ExecutorPaths) -> Iterator[_Interest]:
        """Those that can be judged: what they let through is known."""
        compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
        found: dict[str, _Interest] = {}
        wanted: dict[int, list[int]] = {}
        for row in _rows(where.work, INTERESTS, INTEREST, segment):
            asker = InterestedClient(row["client_id"], row["client"], row["zone"])
            if row["request_digest"] in found:
                found[row["request_digest"]].askers.append(asker)
                continue
            if row["filter"] is None and not row["registrations"]:
                continue
            number = len(found)
            registrations = tuple(row["registrations"] or ())
            found[row["request_digest"]] = _Interest(
                row["request_digest"], row["mask"], [asker], registrations
            )
            for registration in registrations:
                wanted.setdefault(registration, []).append(number)
            if not registrations:
                text = orjson.dumps(row["filter"]).decode()
                self._filters.add(number, compiled.specs("predicate", text))
        if wanted:
            self._of_registrations(segment, where, wanted, compiled)
        return iter(found.values())

    def _of_registrations(
        self,
        segment: dict[str, Any],
        where: ExecutorPaths,
        wanted: dict[int, list[int]],
        compiled: CompiledFilters,
    ) -> None:
        of_stream = ds.field("stream_id") == segment["stream_id"]
        named = of_stream & ds.field("registration_id").isin([*wanted])
        for row in read_rows(where.inputs, "versions", VERSIONS, named):
            specs = compiled.specs(row["language"], row["filter"])
            bounds = (row["since"], row["until"])
            version = StreamVersion(
                *(row["id"], row["registration_id"], row["client"], None, specs, *bounds),
                suspended=row["suspended"],
                group=row["group_id"],
            )
            self._versions.add(version.id, specs)
            for number in wanted[version.registration]:
                self._by_version.setdefault(version.id, []).append((version, number))

    def look(self, sequence: int, appended_us: int, mask: int, payload: bytes) -> None:
        """At one event; one that cannot be decoded is not seen."""
        try:
            event = protobuf_codec.decode(payload)
        except (DecodeError, LookupError, ValueError, TypeError):
            return
        self._seen.append(sequence)
        found = before = self._wanted(event, sequence)
        declared_us = self._hierarchy.declared_us(event)
        if declared_us is not None and appended_us < declared_us + _DECLARED_US:
            with self._hierarchy.alone():
                before = self._wanted(event, sequence)
        for number in found | before:
            if self.wishes[number].mask & mask:
                sure = number in found and number in before
                self._note(number, sequence, event, doubt=not sure)

    def _wanted(self, event: Event, sequence: int) -> set[int]:
        found = set(self._filters.match(event))
        for id in self._versions.match(event) if self._by_version else ():
            found.update(n for v, n in self._by_version[id] if self._holds(v, sequence))
        return found

    def _holds(self, version: StreamVersion, sequence: int) -> bool:
        spans = self._suspended.get(version.group, ()) if version.group is not None else ()
        return version.holds(sequence) and not any(span.covers(sequence) for span in spans)

    def _note(self, number: int, sequence: int, event: Event, *, doubt: bool) -> None:
        doubt = doubt or self._may_have_expired(event) or bool(event.audience)
        if not (event.destinations or self._system):
            self._common[number][doubt].append(sequence)
            return
        wish = self.wishes[number]
        for asker in wish.askers:
            own = self._own.setdefault((wish.id, asker.id), ([], []))
            if self._shown(event, asker):
                own[doubt].append(sequence)

    def _shown(self, event: Event, asker: InterestedClient) -> bool:
        """The audience apart, which is in doubt."""
        if self._system and not is_visible_in_zone(event, asker.zone or ""):
            return False
        return may_see(event._replace(audience=()), asker.name, frozenset())

    def counts(self) -> Iterator[tuple[_Interest, InterestedClient, "_CountsUpTo"]]:
        """For each wish and who had it: how many events there are up to a sequence."""
        seen = np.sort(self._seen)
        for wish, common in zip(self.wishes, self._common, strict=True):
            shared = [np.sort(found) for found in common]
            for asker in wish.askers:
                own = [np.sort(found) for found in self._own.get((wish.id, asker.id), ((), ()))]
                yield wish, asker, _CountsUpTo(self._first, seen, shared, own)


class _CountsUpTo(NamedTuple):
    """Ascending sequences: those seen, and those to be told and in doubt, of all and one's own."""

    first: int
    seen: _Sequences
    shared: list[_Sequences]
    own: list[_Sequences]

    def __call__(self, end: int) -> dict[str, int]:
        sure, doubtful = (
            _count(shared, end) + _count(own, end)
            for shared, own in zip(self.shared, self.own, strict=True)
        )
        unseen = end - self.first + 1 - _count(self.seen, end)
        return {"sure": sure, "doubtful": doubtful, "unseen": unseen}


def _count(sequences: _Sequences, end: int) -> int:
    return int(np.searchsorted(sequences, end, side="right"))


def _rows(work: str, name: str, schema: pa.Schema, segment: dict[str, Any]) -> list[dict[str, Any]]:
    return read_rows(work, name, schema, ds.field("stream_id") == segment["stream_id"])
