"""What matches the events of each stream for callbacks: a match index in the job's work folder, of
all versions that its registrations had.

Written once and mapped by workers, so that 100,000 versions cost a worker next to nothing. Beside
it are the names of clients, and the versions that are matched in memory: what no index can hold,
and what is on `system`. Spark module; what is read is plain.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from eventhub import limits
from registrations.compiled import Compiled
from registrations.match.base.builder import Plan, build_columns
from registrations.match.base.columns import Columns, Gathering
from registrations.match.base.errors import NotIndexable
from registrations.match.base.versions import COLUMNS, NEVER_ENDS
from registrations.match.versions import Version
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
_BUILT = "stream_id long, versions long, in_memory long"


def root_of(work: str, stream_id: int) -> Path:
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
            counts = build_matcher(root_of(work, stream_id), found)
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
    made = _Making()
    build_columns(root, made.shards(rows), Plan(extra=COLUMNS, durable=False))
    names = {"client_id": list(made.names), "client": list(made.names.values())}
    pq.write_table(pa.table(names, schema=_NAMES_SCHEMA), root / _NAMES)
    in_memory = pa.Table.from_pylist(made.in_memory, schema=_IN_MEMORY_SCHEMA)
    pq.write_table(in_memory, root / _IN_MEMORY)
    return made.versions, len(made.in_memory)


def read_names(root: Path) -> dict[int, str]:
    """Of the clients that the versions are of, by id. Raises OSError."""
    columns = pq.read_table(root / _NAMES).columns
    return dict(zip(*(column.to_pylist() for column in columns), strict=True))


def read_in_memory(root: Path) -> Iterator[Version]:
    """The versions that no index has. Raises OSError."""
    compiled = Compiled(limits.INDEX_CHARS_CACHED_MAX)
    for row in pq.read_table(root / _IN_MEMORY).to_pylist():
        yield Version(
            row["id"],
            row["registration_id"],
            row["client"],
            row["endpoint_id"],
            compiled.specs(row["language"], row["filter"]),
            row["since"],
            row["until"],
            zone=row["zone"] if row["is_system"] else None,
            group=row["group_id"],
        )


class _Making:
    """What one build gathers beside its shards."""

    def __init__(self) -> None:
        self.versions = 0
        self.names: dict[int, str] = {}
        self.in_memory: list[dict[str, Any]] = []
        self._compiled = Compiled(limits.INDEX_CHARS_CACHED_MAX)

    def shards(self, rows: Iterable[dict[str, Any]]) -> Iterator[Columns]:
        gathering = Gathering(COLUMNS)
        for row in rows:
            self.versions += 1
            self.names[row["client_id"]] = row["client"]
            if not self._gather(gathering, row):
                self.in_memory.append(row)
                if len(self.in_memory) > limits.INDEX_REFUSED_MAX:
                    raise NotIndexable("Too many filters of the stream cannot be indexed.")
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
