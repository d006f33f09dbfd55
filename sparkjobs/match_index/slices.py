"""Slices of a stream's versions: parsed filters, stored by one task in a file for the task that
assembles the shard. Plain module.
"""

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa

from eventhub.base import limits
from registrations.compiled_filter_cache import CompiledFilters
from registrations.match_index.format.columns import EntryCollector, EntryColumns
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.versions import COLUMNS

REFUSED = "refused.csv"  # of the result: version, registration, reason
_REFUSED = pa.struct(
    [("version", pa.int64()), ("registration", pa.int64()), ("reason", pa.string())]
)
SLICE = pa.schema(
    [
        ("number", pa.int64()),
        ("entries", pa.int64()),
        ("refused", pa.list_(_REFUSED)),
        ("versions", pa.int64()),
    ]
)


class RefusedVersion(NamedTuple):
    """A version that no index can hold."""

    version: int
    registration: int
    reason: str


class Slice(NamedTuple):
    """The outcome of one task; SLICE is its schema."""

    number: int
    entries: int
    refused: list[RefusedVersion]
    versions: int = 0  # that it has read


def write_slice(folder: Path, number: int, batches: Iterable[pa.RecordBatch]) -> Slice:
    """Parse rows of `transform.INDEXED` and write them as a slice. Raises OSError."""
    gathering = EntryCollector(COLUMNS)
    compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
    refused: list[RefusedVersion] = []
    versions = 0
    for batch in batches:
        versions += batch.num_rows
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for id, language, filter_json, *values in rows:
            extra = dict(zip(COLUMNS, values, strict=True))
            try:
                gathering.add(id, compiled.specs(language, filter_json), extra)
            except NotIndexable as error:
                refused.append(RefusedVersion(id, extra["registration"], error.message))
    entries = len(gathering)
    path = _file(folder, number)
    aside = path.with_suffix(f".{uuid4()}")  # a task may be retried, or run twice at once
    with aside.open("wb") as file:
        pickle.dump(gathering.drain(), file, pickle.HIGHEST_PROTOCOL)
    aside.replace(path)
    return Slice(number, entries, refused, versions)


def read_slice(folder: Path, number: int) -> EntryColumns:
    """Read a slice of this run. Raises OSError."""
    with _file(folder, number).open("rb") as file:
        columns: EntryColumns = pickle.load(file)  # noqa: S301 - this run's own folder
    return columns


def _file(folder: Path, number: int) -> Path:
    return folder / f"slice-{number:05}.columns"
