"""The files of a bucket: how events are written, and which events a file has. Plain module."""

import gzip
from collections.abc import Callable, Sequence
from datetime import datetime
from io import BytesIO
from typing import Any, NamedTuple

import orjson

from registrations.sinks.kind import SinkEvent


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
        return {orjson.loads(line)["id"] for line in data.splitlines()}
    except (TypeError, KeyError) as error:
        raise ValueError("a line is no event") from error


def _zipped(events: Sequence[SinkEvent]) -> bytes:
    return gzip.compress(_lines(events), 6, mtime=0)  # the same bytes for the same events


def _ids_of_zipped(data: bytes) -> set[str]:
    try:
        return _ids_of_lines(gzip.decompress(data))
    except (OSError, EOFError) as error:
        raise ValueError("it is not compressed by gzip") from error


def _table(events: Sequence[SinkEvent]) -> bytes:
    """Return a Parquet file, with columns for what is often selected by, and the whole as JSON."""
    # imported when the first such file is written: it takes 50 MiB of a process
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [_row(event) for event in events]
    texts = ("id", "stream", "segment", "domain", "type", "key", "document")
    columns = [(name, pa.string()) for name in texts]
    columns[3:3] = [("sequence", pa.int64()), ("appended_at", pa.timestamp("us", tz="UTC"))]
    table = pa.Table.from_pylist(rows, schema=pa.schema(columns))
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return set(pq.read_table(BytesIO(data), columns=["id"])["id"].to_pylist())
    except pa.ArrowException as error:
        raise ValueError("it is no Parquet file of events") from error


FORMATS = {
    "ndjson": FileFormat(".ndjson", "application/x-ndjson", _lines, _ids_of_lines),
    "ndjson.gz": FileFormat(".ndjson.gz", "application/gzip", _zipped, _ids_of_zipped),
    "parquet": FileFormat(".parquet", "application/vnd.apache.parquet", _table, _ids_of_table),
}
