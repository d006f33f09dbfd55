"""The files of a bucket: how events are written, and which events a file has. Plain module."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

import orjson

from eventhub.base import limits
from eventhub.base.arrow import leave_pandas_out
from registrations.sinks.kind import SinkEvent

_GZIP = 31  # zlib's number for a file of gzip
_IDS = b"eventhub.ids"  # in the footer of a Parquet file: the ids of its events, as JSON


class FileFormat(NamedTuple):
    """A format of files: the end of their names, their media type, how events are written, and how
    the ids of their deliveries are read; that raises ValueError.
    """

    suffix: str
    media_type: str
    write: Callable[[Sequence[SinkEvent]], bytes]
    ids: Callable[[bytes], set[str]]


def _lines(events: Sequence[SinkEvent]) -> bytes:
    return b"".join(event.document + b"\n" for event in events)


def _ids_of_lines(data: bytes) -> set[str]:
    try:
        lines = islice(BytesIO(data), limits.BATCH_EVENTS_MAX + 1)
        return _few([orjson.loads(line)["id"] for line in lines])
    except (TypeError, KeyError) as error:
        raise ValueError("a line is no event") from error


def _few(ids: list[str]) -> set[str]:
    """Return the ids of a file. Raises ValueError for more than a file of the hub has."""
    if len(ids) > limits.BATCH_EVENTS_MAX:
        raise ValueError("it has more events than a file of the hub")
    return set(ids)


def _zipped(events: Sequence[SinkEvent]) -> bytes:
    return gzip.compress(_lines(events), 6, mtime=0)  # the same bytes for the same events


def _ids_of_zipped(data: bytes) -> set[str]:
    file = zlib.decompressobj(_GZIP)
    try:
        lines = file.decompress(data, limits.SINK_OBJECT_READ_BYTES_MAX)
    except zlib.error as error:
        raise ValueError("it is not compressed by gzip") from error
    if not file.eof:
        raise ValueError("it is too large, or not complete")
    return _ids_of_lines(lines)


def _table(events: Sequence[SinkEvent]) -> bytes:
    """Return a Parquet file, with columns for what is often selected by, and the whole as JSON."""
    # imported when the first such file is written: it takes 50 MiB of a process
    import pyarrow as pa
    import pyarrow.parquet as pq

    leave_pandas_out()
    rows = [_row(event) for event in events]
    texts = ("id", "stream", "segment", "domain", "type", "key", "document")
    columns = [(name, pa.string()) for name in texts]
    columns[3:3] = [("sequence", pa.int64()), ("appended_at", pa.timestamp("us", tz="UTC"))]
    ids = orjson.dumps([event.id for event in events])
    table = pa.Table.from_pylist(rows, schema=pa.schema(columns, metadata={_IDS: ids}))
    written = BytesIO()
    pq.write_table(table, written, compression="zstd")
    return written.getvalue()


def _row(event: SinkEvent) -> dict[str, Any]:
    found = orjson.loads(event.document)
    own = found.get("event", {})
    return {
        **{name: found.get(name) for name in ("id", "stream", "segment", "sequence")},
        "appended_at": _moment(found.get("appended_at")),
        **{name: own.get(name) for name in ("domain", "type", "key")},
        "document": event.document.decode(),
    }


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _ids_of_table(data: bytes) -> set[str]:
    """Return the ids in the footer: pages that somebody else wrote may become gigabytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    most = limits.SINK_COLUMNS_MAX
    try:
        file = pq.ParquetFile(BytesIO(data), thrift_container_size_limit=most)
        footer = file.metadata.metadata or {}
        return _few(orjson.loads(footer[_IDS]))
    except (pa.ArrowException, OSError, KeyError, TypeError) as error:
        raise ValueError("it is no Parquet file of events") from error


FORMATS = {
    "ndjson": FileFormat(".ndjson", "application/x-ndjson", _lines, _ids_of_lines),
    "ndjson.gz": FileFormat(".ndjson.gz", "application/gzip", _zipped, _ids_of_zipped),
    "parquet": FileFormat(".parquet", "application/vnd.apache.parquet", _table, _ids_of_table),
}
