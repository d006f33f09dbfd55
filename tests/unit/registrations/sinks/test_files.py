"""Files of buckets, also those that somebody else put in the place of one of the hub's."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventhub.base import limits
from registrations.sinks.files import FORMATS, FileFormat
from registrations.sinks.kind import SinkEvent

IDS = [f"msg_{number}" for number in range(3)]
EVENTS = [SinkEvent(id, json.dumps({"id": id, "stream": "orders"}).encode()) for id in IDS]
MIB = 1024 * 1024


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_file_has_the_ids_of_its_events(form: FileFormat) -> None:
    assert form.ids(form.write(EVENTS)) == set(IDS)


def _bomb() -> bytes:
    return gzip.compress(bytes(4 * limits.SINK_OBJECT_READ_BYTES_MAX), 1)


def _large_pages() -> bytes:
    table = pa.table({"id": ["x" * 100 * MIB]})
    written = BytesIO()
    pq.write_table(table, written, compression="zstd")
    return written.getvalue()


@pytest.mark.parametrize(
    ("format", "made"),  # in the test: each process that collects it would make them
    [
        ("ndjson.gz", _bomb),
        ("ndjson.gz", lambda: FORMATS["ndjson.gz"].write(EVENTS)[:-4]),
        ("ndjson", lambda: b'{"id":"a"}\n' * MIB),
        ("ndjson", lambda: b"[]\n"),
        ("parquet", _large_pages),
        ("parquet", lambda: b"PAR1"),
    ],
)
def test_a_file_of_somebody_else_is_no_burden(format: str, made: Callable[[], bytes]) -> None:
    """A small file may become gigabytes when it is decompressed."""
    data = made()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):
            FORMATS[format].ids(data)
        assert tracemalloc.get_traced_memory()[1] < 3 * limits.SINK_OBJECT_READ_BYTES_MAX
    finally:
        tracemalloc.stop()
