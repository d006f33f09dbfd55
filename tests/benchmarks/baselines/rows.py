"""The log's table without the hub: binary COPY of rows encoded in advance, and one INSERT per
commit. Sql module.
"""

import re
import struct
import subprocess
import tempfile
import time
from typing import LiteralString

import psycopg

from eventhub.supervisor.programs import postgres
from tests.benchmarks.shape import Measure, Pace, Reading

TABLE = "bench_events"
_MAKE: LiteralString = "CREATE TABLE bench_events (LIKE events_p1 INCLUDING ALL)"
_COPY: LiteralString = (
    "COPY bench_events (segment_id, sequence, mask, appended_at, partition_id, payload)"
    " FROM STDIN (FORMAT BINARY)"
)
_INSERT: LiteralString = (
    "INSERT INTO bench_events (segment_id, sequence, mask, appended_at, partition_id, payload)"
    " VALUES (1, %b, %b, clock_timestamp(), 1, %b)"
)
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
CHUNK = 1024 * 1024


def make_table(url: str) -> None:
    """Create a table equal to a partition of the log, its primary key included."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_MAKE)


def copy_buffer(payload: bytes, count: int) -> bytes:
    """Return all rows in PostgreSQL's binary COPY format."""
    row = struct.Struct(f"!hiqiqiqiqiii{len(payload)}s")
    sizes = len(payload)
    rows = (
        row.pack(6, 8, 1, 8, number, 8, -(1 << 63), 8, 800_000_000_000_000, 4, 1, sizes, payload)
        for number in range(count)
    )
    return b"".join((_HEADER, *rows, _TRAILER))


def raw_copy(url: str, payload: bytes, pace: Pace) -> Measure:
    """Measure rows per second of one COPY in one transaction, commit included."""
    buffer = memoryview(copy_buffer(payload, pace.copy_rows))

    def measure() -> Reading:
        with psycopg.connect(url) as connection:
            connection.execute("TRUNCATE bench_events")
            connection.commit()
            began = time.perf_counter()
            with connection.cursor().copy(_COPY) as copy:
                for at in range(0, len(buffer), CHUNK):
                    copy.write(buffer[at : at + CHUNK])
            connection.commit()
            return Reading(pace.copy_rows / (time.perf_counter() - began))

    return measure


def insert_per_commit(url: str, payload: bytes, pace: Pace) -> Measure:
    """Measure rows per second of one client that commits each row, prepared."""

    def measure() -> Reading:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
            connection.execute("TRUNCATE bench_events")
            began = now = time.perf_counter()
            until, number = began + pace.seconds, 0
            while now < until:
                connection.execute(_INSERT, (number, -(1 << 63), payload))
                number += 1
                now = time.perf_counter()
            return Reading(number / (now - began))

    return measure


def pgbench_insert(url: str, payload: bytes, pace: Pace, clients: int) -> Measure:
    """Measure rows per second of PostgreSQL's own load generator, each client committing each
    row, prepared.
    """
    script = (
        "INSERT INTO bench_events (segment_id, sequence, mask, appended_at, partition_id, payload)"
        f" VALUES (1, nextval('bench_numbers'), 1, clock_timestamp(), 1, '\\x{payload.hex()}');"
    )

    def measure() -> Reading:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("TRUNCATE bench_events")
            connection.execute("CREATE SEQUENCE IF NOT EXISTS bench_numbers CACHE 1000")
        words = ["-n", "-M", "prepared", "-j", "2", "-f", "-"]
        words += ["-c", str(clients), "-T", str(max(1, round(pace.seconds))), url]
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(script)
            file.flush()
            words[words.index("-")] = file.name
            done = subprocess.run(
                [str(postgres("pgbench")), *words], capture_output=True, text=True, check=True
            )
        found = re.search(r"tps = ([0-9.]+)", done.stdout)
        assert found is not None, done.stdout
        return Reading(float(found[1]))

    return measure
