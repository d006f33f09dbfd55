"""The announcement of connected clients: its cost, its grace time, and what it survives."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from delivery.presence.watch import announce_presence
from eventhub.base import limits
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.streams import StreamPolicy, create_stream
from eventhub.postgresql.connections import connect
from tests.databases import migrated_database

LONG_S = 10_000.0


@pytest.fixture
def url() -> Iterator[str]:
    with migrated_database("presence") as found:
        sql(found, "INSERT INTO zones (name, presence) VALUES ('shop', true)")
        [(zone,)] = sql(found, "SELECT id FROM zones WHERE name = 'shop'")
        with psycopg.connect(found) as session:
            policy = StreamPolicy(durability="async", keyed=True)
            create_stream(session, zone, "eventhub.presence", policy)
        yield found


def sql(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as session:
        cursor = session.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


def connect_clients(url: str, count: int) -> None:
    """Let so many clients have a socket in one process."""
    process = uuid4()
    sql(url, "INSERT INTO web_processes VALUES (%s, now())", process)
    sql(
        url,
        "WITH made AS (INSERT INTO clients (zone_id, name, created_at)"
        " SELECT z.id, 'c' || n, now() FROM zones z, generate_series(1, %s) AS n"
        " WHERE z.name = 'shop' RETURNING id, zone_id)"
        " INSERT INTO socket_counts (zone_id, client_id, process_id, sockets)"
        " SELECT zone_id, id, %s, 1 FROM made",
        count,
        process,
    )


def disconnect_all(url: str) -> None:
    sql(url, "TRUNCATE socket_counts, web_processes")


def pass_grace(url: str) -> None:
    sql(url, "UPDATE client_presences SET absent_since = absent_since - interval '1 hour'")


async def announce(url: str, watched_s: float = LONG_S) -> int:
    """Announce until nothing is left; return how many rounds that took."""
    rounds = 1
    async with await connect(url, name="test") as session:
        while await announce_presence(session, watched_s=watched_s):
            rounds += 1
    return rounds


def events(url: str) -> list[str]:
    rows = sql(url, "SELECT payload FROM events ORDER BY segment_id, sequence")
    found = [decode(payload) for (payload,) in rows]
    return [one.attributes["change"] for one in found if one.type.startswith("presence.")]


async def test_10_000_clients_that_connect_at_once_cost_a_transaction_for_a_thousand(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SOCKETS_LOST_S", 3_600.0)  # however long it takes
    clients = 10 * limits.PRESENCES_AT_ONCE
    connect_clients(url, clients)
    assert await announce(url) == 11
    assert events(url) == ["join"] * clients
    [(transactions,)] = sql(url, "SELECT count(DISTINCT xmin::text) FROM client_presences")
    assert transactions == 10
    disconnect_all(url)
    await announce(url)
    pass_grace(url)
    assert await announce(url) == 11
    assert events(url)[clients:] == ["leave"] * clients
    assert sql(url, "SELECT count(*) FROM client_presences") == [(0,)]


async def test_a_client_without_a_socket_leaves_only_after_it_could_have_reconnected(
    url: str,
) -> None:
    """The hub, or its database, was away longer than the grace time."""
    connect_clients(url, 1)
    await announce(url)
    disconnect_all(url)
    await announce(url)
    pass_grace(url)
    await announce(url, watched_s=limits.PRESENCE_GRACE_S - 1)
    assert events(url) == ["join"]
    await announce(url)
    await announce(url)
    assert events(url) == ["join", "leave"]


async def test_a_deleted_client_leaves_at_once_and_a_process_without_heartbeat_does_not_count(
    url: str,
) -> None:
    connect_clients(url, 2)
    await announce(url)
    sql(url, "UPDATE web_processes SET last_seen_at = now() - interval '1 hour'")
    sql(url, "UPDATE clients SET deleted_at = now() WHERE name = 'c1'")
    await announce(url)
    assert events(url) == ["join", "join", "leave"]
    assert sql(url, "SELECT client FROM client_presences") == [("c2",)]


async def test_clients_of_a_zone_that_switches_presence_off_leave(url: str) -> None:
    connect_clients(url, 1)
    await announce(url)
    sql(url, "UPDATE zones SET presence = false")
    await announce(url)
    pass_grace(url)
    await announce(url)
    assert events(url) == ["join", "leave"]
