"""Counts of the events that listeners of a stream had to receive, up to given sequences: computed
on executors with the product's own matcher. Spark module.

An event is doubtful if it may have expired, if its audience names client groups, or if its type was
declared later: whether a listener had to receive it depends on when it was matched.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
from google.protobuf.message import DecodeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.base import limits
from eventhub.event import protobuf_codec
from eventhub.event.audience import is_visible_in_zone, may_see
from eventhub.event.envelope import Event
from registrations.compiled_filter_cache import CompiledFilters
from registrations.matching.strategies import StreamStrategy
from registrations.matching.versions import StreamVersion
from sparkjobs.arrow_dataset import ds
from sparkjobs.expected_deliveries import ExecutorPaths, suspensions_of
from sparkjobs.segment_files import NONE, SegmentFile, UnreadableSegmentFile, read_rows
from sparkjobs.tables import SYSTEM_ZONE, VERSIONS
from sparkjobs.type_hierarchy import types_of_zone

INTERESTS, POINTS = "listener-interests", "listener-points"  # folders of the job's work
_DECLARED_US = int(limits.AUDIT_DECLARED_S * 1_000_000)
_INT, _TEXT = pa.int64(), pa.string()
# What clients listened for: one row for each client, stream and interest.
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
# Sequences up to which events are counted.
POINT = pa.schema(
    [("stream_id", _INT), ("client_id", _INT), ("request_digest", _TEXT), ("sequence", _INT)]
)
# Counts within one segment: of its events up to a point; or of all (`whole`), with its last
# sequence.
COUNTS = pa.schema(
    [
        *POINT,
        ("whole", pa.bool_()),
        ("sure", _INT),
        ("doubtful", _INT),
        ("unchecked", _INT),  # sequences that could not be checked
    ]
)


_SureAndDoubtful = tuple[list[int], list[int]]
_Sequences = np.ndarray[Any, Any]


class InterestedClient(NamedTuple):
    """A client that listened."""

    id: int
    name: str
    zone: str | None  # on `system` it sees only events of this zone and of the whole hub


class _Interest(NamedTuple):
    """Content that clients listened for, and those clients."""

    id: str
    mask: int
    clients: list[InterestedClient]
    registrations: tuple[int, ...]


def count_events(segments: DataFrame, paths: ExecutorPaths, archive_url: str) -> DataFrame:
    """Return COUNTS of segments that have their stream's `zone_id`."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist(
                    [*count_segment(row, paths, archive_url)], schema=COUNTS
                )

    return segments.mapInArrow(count, from_arrow_schema(COUNTS))


def count_segment(
    segment: dict[str, Any], paths: ExecutorPaths, archive_url: str
) -> Iterator[dict[str, Any]]:
    """Yield the COUNTS of one segment. Events of an unreadable file count as unchecked."""
    counted = _SegmentCount(segment, paths)
    try:
        if segment["source"] != NONE:
            for batch in SegmentFile(segment, paths.inputs, archive_url).batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    counted.add(*row)
    except UnreadableSegmentFile:
        counted.clear()
    first, last = segment["first"], segment["last"]
    points: dict[tuple[int, str], set[int]] = {}
    for point in _rows(paths.work, POINTS, POINT, segment):
        if first <= point["sequence"] < last:
            whose = point["client_id"], point["request_digest"]
            points.setdefault(whose, set()).add(point["sequence"])
    for interest, client, counts in counted.counts():
        key = {
            "stream_id": segment["stream_id"],
            "client_id": client.id,
            "request_digest": interest.id,
        }
        for at in (*points.get((client.id, interest.id), ()), last):
            yield {**key, "sequence": at, "whole": at == last, **counts.up_to(at)}


class _SegmentCount:
    """The events of one segment that each interest matched."""

    def __init__(self, segment: dict[str, Any], paths: ExecutorPaths) -> None:
        zone_id = segment["zone_id"]
        self._may_have_expired = paths.may_have_expired
        self._types = types_of_zone(paths.inputs, zone_id)
        self._is_system = zone_id == SYSTEM_ZONE
        matching = StreamStrategy(hierarchy=self._types)
        self._filters, self._versions = matching.new(), matching.new()
        self._by_version: dict[int, list[tuple[StreamVersion, int]]] = {}
        self._suspended = suspensions_of(paths.inputs, segment["stream_id"])
        self.interests = [*self._read_interests(segment, paths)]
        self._first = segment["first"]
        self.clear()

    def clear(self) -> None:
        """Forget all events. Sequences are kept per interest if all its clients receive the event,
        otherwise per client. Certain and doubtful sequences are kept separately.
        """
        self._checked: list[int] = []
        self._common: list[_SureAndDoubtful] = [([], []) for _ in self.interests]
        self._own: dict[tuple[str, int], _SureAndDoubtful] = {}

    def _read_interests(self, segment: dict[str, Any], paths: ExecutorPaths) -> Iterator[_Interest]:
        """Read the interests whose filter or registrations were recorded."""
        compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
        found: dict[str, _Interest] = {}
        by_registration: dict[int, list[int]] = {}
        for row in _rows(paths.work, INTERESTS, INTEREST, segment):
            client = InterestedClient(row["client_id"], row["client"], row["zone"])
            if row["request_digest"] in found:
                found[row["request_digest"]].clients.append(client)
                continue
            if row["filter"] is None and not row["registrations"]:
                continue
            number = len(found)
            registrations = tuple(row["registrations"] or ())
            found[row["request_digest"]] = _Interest(
                row["request_digest"], row["mask"], [client], registrations
            )
            for registration in registrations:
                by_registration.setdefault(registration, []).append(number)
            if not registrations:
                text = orjson.dumps(row["filter"]).decode()
                self._filters.add(number, compiled.specs("predicate", text))
        if by_registration:
            self._add_versions(segment, paths, by_registration, compiled)
        return iter(found.values())

    def _add_versions(
        self,
        segment: dict[str, Any],
        paths: ExecutorPaths,
        by_registration: dict[int, list[int]],
        compiled: CompiledFilters,
    ) -> None:
        of_stream = ds.field("stream_id") == segment["stream_id"]
        named = of_stream & ds.field("registration_id").isin([*by_registration])
        for row in read_rows(paths.inputs, "versions", VERSIONS, named):
            specs = compiled.specs(row["language"], row["filter"])
            bounds = (row["since"], row["until"])
            version = StreamVersion(
                *(row["id"], row["registration_id"], row["client"], None, specs, *bounds),
                suspended=row["suspended"],
                group=row["group_id"],
            )
            self._versions.add(version.id, specs)
            for number in by_registration[version.registration]:
                self._by_version.setdefault(version.id, []).append((version, number))

    def add(self, sequence: int, appended_us: int, mask: int, payload: bytes) -> None:
        """Match one event; one that cannot be decoded stays unchecked."""
        try:
            event = protobuf_codec.decode(payload)
        except (DecodeError, LookupError, ValueError, TypeError):
            return
        self._checked.append(sequence)
        found = before = self._match(event, sequence)
        declared_us = self._types.declared_us(event)
        if declared_us is not None and appended_us < declared_us + _DECLARED_US:
            with self._types.undeclared():
                before = self._match(event, sequence)
        for number in found | before:
            if self.interests[number].mask & mask:
                sure = number in found and number in before
                self._note(number, sequence, event, doubt=not sure)

    def _match(self, event: Event, sequence: int) -> set[int]:
        found = set(self._filters.match(event))
        for id in self._versions.match(event) if self._by_version else ():
            found.update(n for v, n in self._by_version[id] if self._holds(v, sequence))
        return found

    def _holds(self, version: StreamVersion, sequence: int) -> bool:
        spans = self._suspended.get(version.group, ()) if version.group is not None else ()
        return version.holds(sequence) and not any(span.covers(sequence) for span in spans)

    def _note(self, number: int, sequence: int, event: Event, *, doubt: bool) -> None:
        doubt = doubt or self._may_have_expired(event) or bool(event.audience)
        if not (event.destinations or self._is_system):
            self._common[number][doubt].append(sequence)
            return
        interest = self.interests[number]
        for client in interest.clients:
            own = self._own.setdefault((interest.id, client.id), ([], []))
            if self._is_visible(event, client):
                own[doubt].append(sequence)

    def _is_visible(self, event: Event, client: InterestedClient) -> bool:
        """Return whether the client may see the event, its audience (a doubt) aside."""
        if self._is_system and not is_visible_in_zone(event, client.zone or ""):
            return False
        return may_see(event._replace(audience=()), client.name, frozenset())

    def counts(self) -> Iterator[tuple[_Interest, InterestedClient, "_CountsUpTo"]]:
        """Yield the counts of each interest and client."""
        checked = np.sort(self._checked)
        for interest, common in zip(self.interests, self._common, strict=True):
            shared = [np.sort(found) for found in common]
            for client in interest.clients:
                found = self._own.get((interest.id, client.id), ((), ()))
                own = [np.sort(each) for each in found]
                yield interest, client, _CountsUpTo(self._first, checked, shared, own)


class _CountsUpTo(NamedTuple):
    """Counts up to a sequence, from ascending lists: the checked sequences, and the certain and
    doubtful ones of all clients (`shared`) and of one client (`own`).
    """

    first: int
    checked: _Sequences
    shared: list[_Sequences]
    own: list[_Sequences]

    def up_to(self, end: int) -> dict[str, int]:
        sure, doubtful = (
            _count(shared, end) + _count(own, end)
            for shared, own in zip(self.shared, self.own, strict=True)
        )
        unchecked = end - self.first + 1 - _count(self.checked, end)
        return {"sure": sure, "doubtful": doubtful, "unchecked": unchecked}


def _count(sequences: _Sequences, end: int) -> int:
    return int(np.searchsorted(sequences, end, side="right"))


def _rows(work: str, name: str, schema: pa.Schema, segment: dict[str, Any]) -> list[dict[str, Any]]:
    return read_rows(work, name, schema, ds.field("stream_id") == segment["stream_id"])
