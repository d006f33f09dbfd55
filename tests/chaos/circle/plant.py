"""Faults that the hub does not know of: in archive files, with manifests rewritten so that every
checksum is right, and in the tables.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventhub.eventlog.archive import manifest as manifests
from eventhub.eventlog.archive.write import PayloadSum


class Fault(NamedTuple):
    """The finding that the audit has to report, and its position."""

    kind: str
    stream: str
    segment: str  # UUID
    first: int  # sequences
    last: int


class Sealed(NamedTuple):
    """An archived segment; `path` is that of its manifest."""

    uuid: str
    stream: str
    first: int
    last: int
    path: Path


def sealed_of(connection: psycopg.Connection[Any], archive: Path) -> list[Sealed]:
    """Return all archived segments, by stream."""
    query: LiteralString = (
        "SELECT g.uuid::text, s.name, g.first, g.last, g.archive_path FROM segments g"
        " JOIN streams s ON s.id = g.stream_id WHERE g.archive_path IS NOT NULL ORDER BY s.name,"
        " g.first"
    )
    rows = connection.execute(query).fetchall()
    return [
        Sealed(uuid, name, first, last, archive / path) for uuid, name, first, last, path in rows
    ]


def lose(segment: Sealed, sequence: int) -> Fault:
    """Remove a row from the file."""
    rewrite(segment, lambda table: table.filter(pc.not_equal(table["sequence"], sequence)))
    return Fault("missing", segment.stream, segment.uuid, sequence, sequence)


def repeat(segment: Sealed, sequence: int) -> Fault:
    """Repeat a row in the file."""

    def doubled(table: pa.Table) -> pa.Table:
        row = table.slice(sequence - segment.first, 1)
        at = sequence - segment.first + 1
        return pa.concat_tables([table.slice(0, at), row, table.slice(at)])

    rewrite(segment, doubled)
    return Fault("duplicate", segment.stream, segment.uuid, sequence, sequence)


def cut(segment: Sealed) -> Fault:
    """Truncate the file; the manifest stays unchanged."""
    file = segment.path.parent / manifests.load(segment.path.read_bytes(), segment.path.name).file
    file.write_bytes(file.read_bytes()[:-1_000])
    return Fault("truncated", segment.stream, segment.uuid, segment.first, segment.last)


def rewrite(segment: Sealed, changed: Callable[[pa.Table], pa.Table]) -> None:
    """Write the file with other rows, and a manifest that agrees with it in every checksum and
    size.
    """
    found = manifests.load(segment.path.read_bytes(), segment.path.name)
    before = segment.path.parent / found.file
    table = changed(pq.read_table(before))
    pq.write_table(table, before, compression="zstd", row_group_size=4_096, store_schema=False,
                   write_page_checksum=True)  # fmt: skip
    data = before.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") :]
    payloads = PayloadSum()
    payloads.add(table["payload"].to_pylist())
    name = f"{before.name.rpartition('-')[0]}-{digest[:16]}.parquet"
    before.rename(before.with_name(name))
    changed = found._replace(
        events=table.num_rows,
        payload_bytes=payloads.bytes,
        payload_sha256=payloads.hex,
        file=name,
        file_bytes=len(data),
        file_sha256=digest,
        footer_sha256=hashlib.sha256(footer).hexdigest(),
        footer_bytes=len(footer),
    )
    segment.path.write_bytes(manifests.dump(changed))


def forget_attempts(connection: psycopg.Connection[Any], sealed: Sealed, sequence: int) -> Fault:
    """Delete the attempts of a delivery that is marked as delivered."""
    where = _row(connection, sealed, sequence)
    gone = connection.execute(
        "DELETE FROM attempts WHERE endpoint_id = %s AND segment_id = %s AND sequence = %s", where
    )
    assert gone.rowcount >= 1
    return Fault("delivered_without_attempt", sealed.stream, sealed.uuid, sequence, sequence)


def forget_delivery(connection: psycopg.Connection[Any], sealed: Sealed, sequence: int) -> Fault:
    """Delete a delivery and every trace of it."""
    where = _row(connection, sealed, sequence)
    for table in ("attempts", "deliveries"):
        statement = psycopg.sql.SQL(
            "DELETE FROM {} WHERE endpoint_id = %s AND segment_id = %s AND sequence = %s"
        ).format(psycopg.sql.Identifier(table))
        assert connection.execute(statement, where).rowcount >= 1
    return Fault("not_delivered", sealed.stream, sealed.uuid, sequence, sequence)


def _row(
    connection: psycopg.Connection[Any], sealed: Sealed, sequence: int
) -> tuple[int, int, int]:
    """Return the delivery of an event that has one."""
    [row] = connection.execute(
        "SELECT d.endpoint_id, d.segment_id, d.sequence FROM deliveries d"
        " JOIN segments g ON g.id = d.segment_id"
        " WHERE g.uuid = %s AND d.sequence = %s",
        (sealed.uuid, sequence),
    ).fetchall()
    return row
