"""The job `match_index`: builds the shards of a stream's match index. Spark module.

Many tasks parse the filters, which is most of the work; one task per shard assembles their slices.
The hub publishes the shards after the job has completed.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.base import limits
from registrations.match_index.format.errors import NotIndexable
from sparkjobs.arrow_dataset import ds
from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec
from sparkjobs.match_index.shards import SHARDS, Pack, WrittenShard, pack_slices, write_pack
from sparkjobs.match_index.slices import REFUSED, SLICE, RefusedVersion, Slice, write_slice
from sparkjobs.match_index.transform import indexed_versions, partition_by_id
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from sparkjobs.segment_files import open_table, read_rows
from sparkjobs.tables import STREAMS, VERSIONS

_SLICES = "slices"
_SLICE_VERSIONS = 100_000  # parsed by one task in seconds


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    """Build the shards. Raises NotIndexable if too many versions are refused."""
    slices_folder, shards_folder = (Path(spec.work, name) for name in (_SLICES, SHARDS))
    for folder in (slices_folder, shards_folder):
        folder.mkdir(parents=True)
    phases.begin("reading versions")
    versions = _versions(spark, spec)
    most = open_table(spec.inputs, "versions", VERSIONS).count_rows()
    tasks = max(spark.sparkContext.defaultParallelism, -(-most // _SLICE_VERSIONS))
    phases.begin("parsing filters")
    slices = parse_slices(partition_by_id(versions, tasks), slices_folder)
    refused = _refused(slices)
    phases.begin("assembling shards")
    packs = pack_slices(slices, limits.INDEX_SHARD_ENTRIES_MAX)
    shards = write_shards(spark, packs, slices_folder, shards_folder)
    _write_refused(Path(spec.result), refused)
    count = sum(part.versions for part in slices)
    return _result(spec.params["stream"], count, shards, refused)


def parse_slices(versions: DataFrame, folder: Path) -> list[Slice]:
    """Write a slice of each partition of `transform.INDEXED` rows into the folder."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        part = write_slice(folder, context.partitionId() if context else 0, batches)
        row = {**part._asdict(), "refused": [one._asdict() for one in part.refused]}
        yield pa.RecordBatch.from_pylist([row], schema=SLICE)

    rows = versions.mapInArrow(parse, from_arrow_schema(SLICE)).collect()
    return [
        Slice(row.number, row.entries, [RefusedVersion(*one) for one in row.refused], row.versions)
        for row in rows
    ]


def write_shards(
    spark: SparkSession, packs: list[Pack], slices: Path, shards: Path
) -> list[WrittenShard]:
    """Write a shard for each pack, in a task of its own; `slices` and `shards` are folders."""
    if not packs:
        return []
    tasks = spark.sparkContext.parallelize(packs, len(packs))
    return tasks.map(lambda pack: write_pack(slices, shards, pack)).collect()


def _versions(spark: SparkSession, spec: JobSpec) -> DataFrame:
    """Return the versions to index. Raises LookupError if the inputs lack the stream."""
    stream_id = spec.params["stream_id"]
    streams = read_rows(spec.inputs, "streams", STREAMS, ds.field("id") == stream_id)
    if not streams:
        raise LookupError(f"The inputs do not contain stream {stream_id}.")
    forwarded = streams[0]["forwarded"] or 0
    return indexed_versions(table(spark, spec, "versions"), stream_id, forwarded)


def _refused(slices: list[Slice]) -> list[RefusedVersion]:
    """Return the refused versions, ascending. Raises NotIndexable if there are too many."""
    found = sorted(one for part in slices for one in part.refused)
    if len(found) > limits.INDEX_REFUSED_MAX:
        message = f"No index can hold {len(found):,} versions; the first: {found[0].reason}"
        raise NotIndexable(message)
    return found


def _write_refused(folder: Path, refused: list[RefusedVersion]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / REFUSED).open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(RefusedVersion._fields)
        lines.writerows(refused)


def _result(
    stream: str, versions: int, shards: list[WrittenShard], refused: list[RefusedVersion]
) -> JobResult:
    figures: dict[str, int | float | str | None] = {
        "registrations": sum(shard.ids for shard in shards),
        "entries": sum(shard.entries for shard in shards),
        "shards": len(shards),
        "bytes": sum(shard.bytes for shard in shards),
        "refused": len(refused),
    }
    summary = f"{stream}: {figures['registrations']:,} of {versions:,} versions indexed."
    about = {REFUSED: "Versions that no index can hold and that are matched in memory."}
    return JobResult(summary, figures, about=about, details={"stream": stream, **figures})
