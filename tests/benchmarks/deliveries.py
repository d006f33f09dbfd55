"""Endpoints, events and deliveries in the form in which a forwarder writes them. Sql module."""

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from delivery.partitions.create import Partition, day_partition, deliveries_partition
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Draft
from registrations.endpoints.secrets import Keyring
from tests.benchmarks.events import stored

Connection = psycopg.Connection[Any]
SECRET = bytes(range(32))
MASK = 1 << 63
APPENDED_MAX = 2_000  # events of one transaction


def connect(url: str) -> Connection:
    """Open a connection in autocommit mode to a database in which deliveries can be written."""
    connection = psycopg.connect(url, autocommit=True)
    row = connection.execute("SELECT current_date, current_partition FROM log_state").fetchone()
    assert row is not None
    _make(connection, day_partition("attempts", date.fromisoformat(str(row[0]))))
    _make(connection, deliveries_partition(row[1]))
    return connection


def make_endpoints(
    connection: Connection,
    secret_key: str,
    urls: Sequence[str],
    *,
    ordered: bool = False,
    batch: int | None = None,
) -> list[int]:
    """Create endpoints, one per URL; they are disabled, so nothing is delivered yet. `ordered`: by
    key; `batch`: so many events in a request.
    """
    order_by = "@key" if ordered else ""
    return [
        connection.execute(
            "INSERT INTO endpoints"
            "  (zone_id, client_id, url, secret, enabled, ordered, order_by, batch_events_max)"
            " SELECT zone_id, id, %s, %s, false, %s, %s, %s FROM clients LIMIT 1 RETURNING id",
            (url, Keyring((secret_key,)).seal(SECRET), ordered, order_by, batch),
        ).fetchone()[0]  # type: ignore[index]
        for url in urls
    ]


def enable(connection: Connection, endpoints: Sequence[int], *, on: bool = True) -> None:
    query = "UPDATE endpoints SET enabled = %s WHERE id = ANY(%s)"
    connection.execute(query, (on, list(endpoints)))
    notify(connection)


def notify(connection: Connection) -> None:
    """Notify workers of new deliveries, as a forwarder does."""
    connection.execute("SELECT pg_notify('eventhub_deliveries', '')")


def append(connection: Connection, stream_id: int, count: int) -> list[int]:
    """Append so many events; return their sequences."""
    found: list[int] = []
    while len(found) < count:
        drafts = [Draft(stream_id, MASK, stored())] * min(count - len(found), APPENDED_MAX)
        with connection.transaction():
            found += [each.sequence for each in append_in(connection, drafts)]
    return found


def insert_pending(
    connection: Connection,
    stream_id: int,
    sequences: Sequence[int],
    endpoints: Sequence[int],
    keys: int = 0,
) -> None:
    """Insert a delivery of each event to each endpoint, in the log's order. `keys`: to endpoints
    that are ordered by key, with so many different ones.
    """
    connection.execute(
        "WITH written AS ("
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        "                        registrations, ordered, lane)"
        " SELECT s.partition_id, e, s.id, n, s.stream_id, ARRAY[1],"
        "        %(keys)s > 0, -1 - n %% NULLIF(%(keys)s, 0)"
        "   FROM unnest(%(sequences)s::bigint[]) AS n"
        "   JOIN segments s ON s.stream_id = %(stream)s AND s.first <= n "
        "                  AND (s.last IS NULL OR s.last >= n),"
        "        unnest(%(endpoints)s::bigint[]) AS e"
        "  ORDER BY n, e"
        " RETURNING endpoint_id, lane)"
        "INSERT INTO lanes (endpoint_id, stream_id, expires_at, due_at)"
        " SELECT DISTINCT endpoint_id, lane, 'epoch'::timestamptz, now()"
        "   FROM written WHERE lane IS NOT NULL",
        {
            "keys": keys,
            "sequences": list(sequences),
            "stream": stream_id,
            "endpoints": list(endpoints),
        },
    )


class Work(NamedTuple):
    """What a database has done so far: bytes of WAL, and transactions that wrote something."""

    wal_bytes: int
    transactions: int


def work(connection: Connection) -> Work:
    row = connection.execute(
        "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint,"
        "       pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    ).fetchone()
    assert row is not None
    return Work(*row)


def keys(connection: Connection, endpoints: Sequence[int]) -> list[tuple[int, ...]]:
    """Return (group, endpoint, segment, sequence) of the deliveries of those endpoints, oldest
    first.
    """
    return connection.execute(
        "SELECT partition_id, endpoint_id, segment_id, sequence FROM deliveries"
        " WHERE endpoint_id = ANY(%s) ORDER BY sequence, endpoint_id",
        (list(endpoints),),
    ).fetchall()


def pending(connection: Connection, endpoints: Sequence[int]) -> int:
    """Return the number of unfinished deliveries of those endpoints."""
    row = connection.execute(
        "SELECT count(*) FROM deliveries WHERE endpoint_id = ANY(%s) AND state = 'pending'",
        (list(endpoints),),
    ).fetchone()
    assert row is not None
    return int(row[0])


def any_pending(connection: Connection, endpoints: Sequence[int]) -> bool:
    """Return whether a delivery of those endpoints is unfinished. It costs little, so that the
    database's time is that of the workers.
    """
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM unnest(%s::bigint[]) AS e, LATERAL ("
        " SELECT FROM deliveries WHERE endpoint_id = e AND state = 'pending' LIMIT 1) AS d)",
        (list(endpoints),),
    ).fetchone()
    return bool(row and row[0])


def latencies_ms(
    connection: Connection, endpoints: Sequence[int]
) -> tuple[float, dict[str, float]]:
    """Return the 99th percentile from a delivery's row to its response, and other figures.

    The first second is left out: it includes the workers' first connections to the endpoints.
    """
    row = connection.execute(
        "WITH took AS ("
        " SELECT extract(epoch FROM a.attempted_at - d.created_at) * 1000 + a.duration_ms AS ms"
        "   FROM deliveries d JOIN attempts a USING (endpoint_id, segment_id, sequence)"
        "  WHERE d.endpoint_id = ANY(%(endpoints)s) AND a.outcome = 'delivered'"
        "    AND d.created_at > (SELECT min(created_at) + interval '1 second' FROM deliveries"
        "                         WHERE endpoint_id = ANY(%(endpoints)s)))"
        " SELECT percentile_cont(ARRAY[0.99, 0.5]) WITHIN GROUP (ORDER BY ms), max(ms), count(*)"
        "   FROM took",
        {"endpoints": list(endpoints)},
    ).fetchone()
    assert row is not None
    p99, p50 = row[0] or (0.0, 0.0)
    return float(p99), {"p50_ms": float(p50), "max_ms": float(row[1] or 0), "count": float(row[2])}


def _make(connection: Connection, partition: Partition) -> None:
    connection.execute(
        sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES {}").format(
            sql.Identifier(partition.name), sql.Identifier(partition.parent), partition.bound
        )
    )
