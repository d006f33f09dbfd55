"""`match_index`: the shards of a stream's match index, from all its versions. Spark module.

Filters are parsed in many tasks, which is most of the work; what they find is put together by one
task for each shard. The hub publishes the shards when the job has ended well.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.base import limits
from registrations.match_index.format.errors import NotIndexable
from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec
from sparkjobs.match_index.shards import SHARDS, Pack, WrittenShard, pack_slices, write_pack
from sparkjobs.match_index.slices import REFUSED, SLICE, RefusedVersion, Slice, write_slice
from sparkjobs.match_index.transform import indexed_versions, partition_by_id
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult

_SLICES = "slices"
_SLICE_VERSIONS = 100_000  # parsed by one task: seconds


def run(spark: SparkSession, order: JobSpec, phases: Phases) -> JobResult:
    """Raises NotIndexable if too many versions are refused."""
    slices_folder, shards_folder = (Path(order.work, name) for name in (_SLICES, SHARDS))
    for folder in (slices_folder, shards_folder):
        folder.mkdir(parents=True)
    phases.begin("reading versions")
    versions = _versions(spark, order)
    count = versions.count()
    tasks = max(spark.sparkContext.defaultParallelism, -(-count // _SLICE_VERSIONS))
    phases.begin("parsing filters")
    slices = parse_slices(partition_by_id(versions, tasks), slices_folder)
    refused = _refused(slices)
    phases.begin("putting shards together")
    packs = pack_slices(slices, limits.INDEX_SHARD_ENTRIES_MAX)
    shards = write_shards(spark, packs, slices_folder, shards_folder)
    _write_refused(Path(order.result), refused)
    return _result(order.params["stream"], count, shards, refused)


def parse_slices(versions: DataFrame, folder: Path) -> list[Slice]:
    """A slice of each partition of rows of `transform.INDEXED`, in the folder."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        made = write_slice(folder, context.partitionId() if context else 0, batches)
        row = {**made._asdict(), "refused": [one._asdict() for one in made.refused]}
        yield pa.RecordBatch.from_pylist([row], schema=SLICE)

    rows = versions.mapInArrow(parse, from_arrow_schema(SLICE)).collect()
    return [
        Slice(row.number, row.entries, [RefusedVersion(*one) for one in row.refused])
        for row in rows
    ]


def write_shards(
    spark: SparkSession, packs: list[Pack], slices: Path, shards: Path
) -> list[WrittenShard]:
    """A shard of each pack, by a task of its own; folders of slices and of shards."""
    if not packs:
        return []
    tasks = spark.sparkContext.parallelize(packs, len(packs))
    return tasks.map(lambda pack: write_pack(slices, shards, pack)).collect()


def _versions(spark: SparkSession, order: JobSpec) -> DataFrame:
    """Raises LookupError if the inputs have no such stream."""
    stream_id = order.params["stream_id"]
    stream = table(spark, order, "streams").where(sf.col("id") == stream_id).first()
    if stream is None:
        raise LookupError(f"The stream {stream_id} is not among the inputs.")
    return indexed_versions(table(spark, order, "versions"), stream_id, stream.forwarded or 0)


def _refused(slices: list[Slice]) -> list[RefusedVersion]:
    """Ascending. Raises NotIndexable if they are more than a manifest names."""
    found = sorted(one for part in slices for one in part.refused)
    if len(found) > limits.INDEX_REFUSED_MAX:
        raise NotIndexable(f"No index can hold {len(found):,} versions; the first: {found[0].why}")
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
    summary = f"{stream}: {figures['registrations']:,} of {versions:,} versions are in the index."
    about = {REFUSED: "Versions that no index can hold; they are matched in memory."}
    return JobResult(summary, figures, about=about, details={"stream": stream, **figures})
