"""The command `python -m tests.benchmarks.spark_built WORK`: writes inputs of the job `match_index`
with many registrations, or builds their index as the hub does. It runs in a process of its own.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from eventhub.base import limits
from registrations.compiled_filter_cache import CompiledFilters
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS
from sparkjobs.tables import STREAMS, VERSIONS
from tests.benchmarks import fleet

STREAM = 7
_ROWS = 100_000  # of a row group


class Work(NamedTuple):
    """The work. `what`: inputs or build."""

    what: str
    inputs: str
    root: str = ""
    registrations: int = 0


def make_inputs(work: Work) -> None:
    inputs = Path(work.inputs)
    for name in ("streams", "versions"):
        (inputs / name).mkdir(parents=True)
    stream = {"id": STREAM, "zone_id": 1, "zone": "bench", "name": "fleet", "forwarded": 0}
    pq.write_table(pa.Table.from_pylist([stream], STREAMS), inputs / "streams" / "part-0.parquet")
    with pq.ParquetWriter(inputs / "versions" / "part-0.parquet", VERSIONS) as file:
        for first in range(0, work.registrations, _ROWS):
            file.write_table(_versions(first, min(_ROWS, work.registrations - first)))


def _versions(first: int, count: int) -> pa.Table:
    """Return a version of each registration of the fleet (fleet.py), all in force."""
    found = [_written(number) for number in range(first, first + count)]
    ids = np.arange(first + 1, first + count + 1)
    given = {
        "id": ids,
        "registration_id": ids,
        "client_id": ids % 1_000 + 1,
        "endpoint_id": ids % 100_000 + 1,
        "stream_id": np.full(count, STREAM),
        "since": np.zeros(count, np.int64),
        "suspended": [False] * count,
        "report": np.zeros(count, np.int64),
        "language": [language for language, _ in found],
        "filter": [text for _, text in found],
    }
    columns = [pa.array(given.get(field.name, [None] * count), field.type) for field in VERSIONS]
    return pa.Table.from_arrays(columns, schema=VERSIONS)


def _written(number: int) -> tuple[str, str]:
    """Return a language, and the filter as it is stored."""
    fields = fleet.filter_of(number)
    if "language" in fields:
        return fields["language"], orjson.dumps(fields["filter"]).decode()
    return "pairs", orjson.dumps(fields).decode()


def build_here(work: Work) -> None:
    """Build like registrations/match_index/epochs/build.py, with files instead of the database."""
    build(Path(work.root), _entries(Path(work.inputs)), EpochPlan(0, extra=COLUMNS))


def _entries(inputs: Path) -> Iterator[IndexEntry]:
    compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
    names = ("id", "language", "filter", "client_id", "endpoint_id")
    for batch in pq.ParquetFile(inputs / "versions" / "part-0.parquet").iter_batches(
        10_000, columns=[*names]
    ):
        rows = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        for id, language, text, client, endpoint in rows:
            extra = {
                "client": client,
                "endpoint": endpoint,
                "group": 0,
                "registration": id,
                "report": 0,
                "since": 0,
                "until": NEVER_ENDS,
            }
            yield IndexEntry(id, compiled.specs(language, text), extra)


if __name__ == "__main__":
    given = Work(*json.loads(sys.argv[1]))
    (make_inputs if given.what == "inputs" else build_here)(given)
