"""The callback matcher of each stream: a match index, in the job's work folder, of all versions
that the stream's registrations ever had. Spark module.

The index is written once and mapped by workers, so 100,000 versions cost a worker almost no memory.
The folder also contains the clients' names, and the versions that are matched in memory: those that
no index can hold, and those on `system`. A worker loads only the in-memory versions that can apply
to the segment it reads, so its memory does not grow with the length of the history.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.compiled_filter_cache import CompiledFilters
from registrations.match_index.format.builder import EpochPlan, build_columns
from registrations.match_index.format.columns import EntryCollector, EntryColumns
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.versions import StreamVersion
from sparkjobs.arrow_dataset import ds
from sparkjobs.tables import SYSTEM_ZONE, VERSIONS

_IN_MEMORY = "in-memory.parquet"
_NAMES = "names.parquet"
_FOLDER = "matchers"
_COLUMNS_READ = [
    *("stream_id", "id", "registration_id", "client_id", "client", "zone_id", "zone"),
    *("endpoint_id", "language", "filter", "since", "until", "group_id", "report"),
]
_IN_MEMORY_SCHEMA = pa.schema(
    [*(VERSIONS.field(name) for name in _COLUMNS_READ), pa.field("is_system", pa.bool_())]
)
_NAMES_SCHEMA = pa.schema([("client_id", pa.int64()), ("client", pa.string())])
_ROWS_PER_GROUP = 10_000  # versions buffered while reading or writing: some MB
_BUILT = "stream_id long, versions long, in_memory long"


def matcher_folder(work: str, stream_id: int) -> Path:
    """Return the folder of a stream's matcher."""
    return Path(work) / _FOLDER / str(stream_id)


def build_matchers(versions: DataFrame, streams: DataFrame, work: str) -> DataFrame:
    """Write the matcher of each stream with callbacks, when an action runs; a row per stream:
    (stream_id, versions, in_memory).
    """
    system = streams.select(
        sf.col("id").alias("stream_id"), (sf.col("zone_id") == SYSTEM_ZONE).alias("is_system")
    )
    for_callbacks = (
        versions.where(sf.col("endpoint_id").isNotNull() & ~sf.col("suspended"))
        .select(*_COLUMNS_READ)
        .join(sf.broadcast(system), "stream_id")
    )
    by_stream = for_callbacks.repartition("stream_id").sortWithinPartitions("stream_id", "id")

    def build(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for stream_id, found in groupby(rows, key=itemgetter("stream_id")):
            counts = build_matcher(matcher_folder(work, stream_id), found)
            yield pa.RecordBatch.from_pydict(
                {
                    "stream_id": [stream_id],
                    "versions": [counts[0]],
                    "in_memory": [counts[1]],
                }
            )

    return by_stream.mapInArrow(build, _BUILT)


def build_matcher(root: Path, rows: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """Build one stream's matcher from rows of `tables.VERSIONS` that name an endpoint. Return the
    number of versions, and of those that no index holds.
    """
    with _InMemoryVersionsFile(root) as in_memory:
        matcher = _MatcherBuild(in_memory)
        build_columns(root, matcher.shards(rows), EpochPlan(extra=COLUMNS, durable=False))
    names = {"client_id": list(matcher.names), "client": list(matcher.names.values())}
    pq.write_table(pa.table(names, schema=_NAMES_SCHEMA), root / _NAMES)
    return matcher.versions, in_memory.versions


def read_names(root: Path) -> dict[int, str]:
    """Return the names of the versions' clients, by client id. Raises OSError."""
    columns = pq.read_table(root / _NAMES).columns
    return dict(zip(*(column.to_pylist() for column in columns), strict=True))


class InMemoryVersions:
    """The versions of a stream that no index holds, loaded for one range of sequences at a time."""

    def __init__(self, root: Path, matcher: FilterMatcher) -> None:
        """Open the file; `matcher` must be empty. Raises OSError."""
        self.versions: dict[int, StreamVersion] = {}  # loaded ones, by id
        self._table = ds.dataset(root / _IN_MEMORY, schema=_IN_MEMORY_SCHEMA, format="parquet")
        self._is_empty = self._table.count_rows() == 0
        self._matcher = matcher
        self._compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)

    def load(self, first: int, last: int) -> None:
        """Load the versions that can apply to these sequences and unload the others; versions
        already loaded are not read again. Raises OSError.
        """
        if self._is_empty:
            return
        until = ds.field("until")
        applies = (ds.field("since") < last) & (until.is_null() | (until >= first))
        ids = self._table.to_table(columns=["id"], filter=applies).column("id")
        needed = set(ids.to_pylist())
        for id in [id for id in self.versions if id not in needed]:
            self._matcher.remove(id)
            del self.versions[id]
        if len(self.versions) < len(needed):
            for batch in self._table.to_batches(filter=applies, batch_size=_ROWS_PER_GROUP):
                self._add(row for row in batch.to_pylist() if row["id"] not in self.versions)

    def match(self, event: Event) -> list[StreamVersion]:
        """Return the loaded versions whose filters match the event."""
        return [self.versions[id] for id in self._matcher.match(event)] if self.versions else []

    def _add(self, rows: Iterable[dict[str, Any]]) -> None:
        for row in rows:
            version = StreamVersion(
                row["id"],
                row["registration_id"],
                row["client"],
                row["endpoint_id"],
                self._compiled.specs(row["language"], row["filter"]),
                row["since"],
                row["until"],
                zone=row["zone"] if row["is_system"] else None,
                group=row["group_id"],
            )
            self.versions[version.id] = version
            self._matcher.add(version.id, version.specs)


class _InMemoryVersionsFile:
    """The file of the versions that no index holds, written in batches."""

    def __init__(self, root: Path) -> None:
        """Create the file. Raises OSError."""
        root.mkdir(parents=True, exist_ok=True)
        self.versions = 0
        self._rows: list[dict[str, Any]] = []
        self._writer = pq.ParquetWriter(root / _IN_MEMORY, _IN_MEMORY_SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self.versions += 1
        if len(self._rows) >= _ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=_IN_MEMORY_SCHEMA))
            self._rows.clear()


class _MatcherBuild:
    """The build of one stream's matcher: its shards, and the names and versions outside them."""

    def __init__(self, in_memory: _InMemoryVersionsFile) -> None:
        self.versions = 0
        self.names: dict[int, str] = {}
        self._in_memory = in_memory
        self._compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)

    def shards(self, rows: Iterable[dict[str, Any]]) -> Iterator[EntryColumns]:
        gathering = EntryCollector(COLUMNS)
        for row in rows:
            self.versions += 1
            self.names[row["client_id"]] = row["client"]
            if not self._gather(gathering, row):
                self._in_memory.add(row)
            if len(gathering) >= limits.INDEX_SHARD_ENTRIES_MAX:
                yield gathering.drain()
        yield gathering.drain()

    def _gather(self, gathering: EntryCollector, row: dict[str, Any]) -> bool:
        if row["is_system"]:
            return False
        try:
            specs = self._compiled.specs(row["language"], row["filter"])
            gathering.add(row["id"], specs, _extra(row))
        except NotIndexable:
            return False
        return True


def _extra(row: dict[str, Any]) -> dict[str, int]:
    return {
        "client": row["client_id"],
        "endpoint": row["endpoint_id"],
        "group": row["group_id"] or 0,
        "registration": row["registration_id"],
        "report": 0,  # the audit does not compare bodies
        "since": row["since"],
        "until": NEVER_ENDS if row["until"] is None else row["until"],
    }
