"""A slice of the versions as a task reads it: filters parsed and gathered, kept as a file for the
task that puts a shard together. Plain module.
"""

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa

from eventhub.base import limits
from registrations.compiled import CompiledFilters
from registrations.match_index.format.columns import Columns, Gathering
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.versions import COLUMNS

REFUSED = "refused.csv"  # in the result: version, registration, why
_REFUSED = pa.struct([("version", pa.int64()), ("registration", pa.int64()), ("why", pa.string())])
SLICE = pa.schema(
    [("number", pa.int64()), ("entries", pa.int64()), ("refused", pa.list_(_REFUSED))]
)


class RefusedVersion(NamedTuple):
    """A version that no index can hold."""

    version: int
    registration: int
    why: str


class Slice(NamedTuple):
    """What became of the versions of one task; SLICE is the same as a row."""

    number: int
    entries: int
    refused: list[RefusedVersion]


def write_slice(folder: Path, number: int, batches: Iterable[pa.RecordBatch]) -> Slice:
    """Of rows of `transform.INDEXED`. Raises OSError."""
    gathering = Gathering(COLUMNS)
    compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
    refused: list[RefusedVersion] = []
    for batch in batches:
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for id, language, filter_json, *values in rows:
            extra = dict(zip(COLUMNS, values, strict=True))
            try:
                gathering.add(id, compiled.specs(language, filter_json), extra)
            except NotIndexable as error:
                refused.append(RefusedVersion(id, extra["registration"], error.message))
    entries = len(gathering)
    path = _file(folder, number)
    aside = path.with_suffix(f".{uuid4()}")  # a task may be tried again, or be run twice
    with aside.open("wb") as file:
        pickle.dump(gathering.drain(), file, pickle.HIGHEST_PROTOCOL)
    aside.replace(path)
    return Slice(number, entries, refused)


def read_slice(folder: Path, number: int) -> Columns:
    """One that a task of this run wrote. Raises OSError."""
    with _file(folder, number).open("rb") as file:
        found: Columns = pickle.load(file)  # noqa: S301 - this run's own folder
    return found


def _file(folder: Path, number: int) -> Path:
    return folder / f"slice-{number:05}.columns"
