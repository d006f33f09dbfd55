"""What matches the events of each stream for callbacks: a match index in the job's work folder, of
all versions that its registrations had. Spark module.

Written once and mapped by workers, so that 100,000 versions cost a worker next to nothing. Beside
it are the names of clients, and the versions that are matched in memory: what no index can hold,
and what is on `system`. Of these a worker loads those that can hold for an event of the segment it
reads, so its memory is that of the registrations of one moment, however long the history is. Spark
module; what is read is plain.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.compiled import CompiledFilters
from registrations.match_index.format.builder import Plan, build_columns
from registrations.match_index.format.columns import Columns, Gathering
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.versions import StreamVersion
from sparkjobs.tables import SYSTEM_ZONE, VERSIONS

_IN_MEMORY = "in-memory.parquet"
_NAMES = "names.parquet"
_FOLDER = "matchers"
_WANTED = [
    *("stream_id", "id", "registration_id", "client_id", "client", "zone_id", "zone"),
    *("endpoint_id", "language", "filter", "since", "until", "group_id", "report"),
]
_IN_MEMORY_SCHEMA = pa.schema(
    [*(VERSIONS.field(name) for name in _WANTED), pa.field("is_system", pa.bool_())]
)
_NAMES_SCHEMA = pa.schema([("client_id", pa.int64()), ("client", pa.string())])
_ROWS_PER_GROUP = 10_000  # versions in memory while they are written or read: some MB
_BUILT = "stream_id long, versions long, in_memory long"


def matcher_folder(work: str, stream_id: int) -> Path:
    """The folder of a stream's matcher."""
    return Path(work) / _FOLDER / str(stream_id)


def build_matchers(versions: DataFrame, streams: DataFrame, work: str) -> DataFrame:
    """Write what matches each stream's events for callbacks; (stream_id, versions, in_memory) of
    streams that have any. Done when an action has run.
    """
    system = streams.select(
        sf.col("id").alias("stream_id"), (sf.col("zone_id") == SYSTEM_ZONE).alias("is_system")
    )
    wanted = (
        versions.where(sf.col("endpoint_id").isNotNull() & ~sf.col("suspended"))
        .select(*_WANTED)
        .join(sf.broadcast(system), "stream_id")
    )
    one_after_another = wanted.repartition("stream_id").sortWithinPartitions("stream_id", "id")

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

    return one_after_another.mapInArrow(build, _BUILT)


def build_matcher(root: Path, rows: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """Of one stream, from rows of `tables.VERSIONS` that name an endpoint; how many there are, and
    how many of them no index takes.
    """
    with _InMemoryVersionsFile(root) as in_memory:
        made = _MatcherBuild(in_memory)
        build_columns(root, made.shards(rows), Plan(extra=COLUMNS, durable=False))
    names = {"client_id": list(made.names), "client": list(made.names.values())}
    pq.write_table(pa.table(names, schema=_NAMES_SCHEMA), root / _NAMES)
    return made.versions, in_memory.versions


def read_names(root: Path) -> dict[int, str]:
    """Of the clients that the versions are of, by id. Raises OSError."""
    columns = pq.read_table(root / _NAMES).columns
    return dict(zip(*(column.to_pylist() for column in columns), strict=True))


class InMemoryVersions:
    """The versions of a stream that no index has, loaded for one range of sequences at a time."""

    def __init__(self, root: Path, matcher: FilterMatcher) -> None:
        """`matcher`: an empty one. Raises OSError."""
        self.versions: dict[int, StreamVersion] = {}  # those that are loaded, by id
        self._table = ds.dataset(root / _IN_MEMORY, schema=_IN_MEMORY_SCHEMA, format="parquet")
        self._is_empty = self._table.count_rows() == 0
        self._matcher = matcher
        self._compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)

    def load(self, first: int, last: int) -> None:
        """Load the versions that can hold for an event of these sequences, and forget the others.
        What is loaded already stays as it is. Raises OSError.
        """
        if self._is_empty:
            return
        until = ds.field("until")
        holds = (ds.field("since") < last) & (until.is_null() | (until >= first))
        found = self._table.to_table(columns=["id"], filter=holds).column("id")
        wanted = set(found.to_pylist())
        for id in [id for id in self.versions if id not in wanted]:
            self._matcher.remove(id)
            del self.versions[id]
        if len(self.versions) < len(wanted):
            for batch in self._table.to_batches(filter=holds, batch_size=_ROWS_PER_GROUP):
                self._add(row for row in batch.to_pylist() if row["id"] not in self.versions)

    def match(self, event: Event) -> list[StreamVersion]:
        """Those loaded whose filters the event matches."""
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
    """The file of the versions that no index has, written piece by piece."""

    def __init__(self, root: Path) -> None:
        """Raises OSError."""
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
    """What one build gathers beside its shards."""

    def __init__(self, in_memory: _InMemoryVersionsFile) -> None:
        self.versions = 0
        self.names: dict[int, str] = {}
        self._in_memory = in_memory
        self._compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)

    def shards(self, rows: Iterable[dict[str, Any]]) -> Iterator[Columns]:
        gathering = Gathering(COLUMNS)
        for row in rows:
            self.versions += 1
            self.names[row["client_id"]] = row["client"]
            if not self._gather(gathering, row):
                self._in_memory.add(row)
            if len(gathering) >= limits.INDEX_SHARD_ENTRIES_MAX:
                yield gathering.drain()
        yield gathering.drain()

    def _gather(self, gathering: Gathering, row: dict[str, Any]) -> bool:
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
        "report": 0,  # what of the event is told is not asked here
        "since": row["since"],
        "until": NEVER_ENDS if row["until"] is None else row["until"],
    }
