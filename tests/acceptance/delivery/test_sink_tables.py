"""Endpoints whose events become rows of a client's own PostgreSQL database."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from eventhub.supervisor.postgres import SOCKET
from tests.databases import new_database
from tests.live import Answer, LiveHub, LiveZone
from tests.tcp_relay import Relay, relay_to

TABLE = """
CREATE TABLE events (
    id text PRIMARY KEY, place bigint GENERATED ALWAYS AS IDENTITY, sequence bigint,
    total int CHECK (total < 1000), at timestamptz, document jsonb NOT NULL)
"""
SETTINGS = {
    "table": "events",
    "columns": {
        "id": "/id",
        "sequence": "/sequence",
        "total": "/event/attributes/total",
        "at": "/appended_at",
        "document": "",
    },
}
PASSWORD = "a-hidden-word"
PATIENCE_S = 30.0


class Table:
    """A database with a table `events`. `url`: over TCP, as an endpoint has it."""

    def __init__(self, url: str, relay: Relay) -> None:
        parts = conninfo_to_dict(url)
        self.url = f"postgresql://127.0.0.1:{relay.port}/{parts['dbname']}"
        self.relay = relay
        self.direct_url = url
        self.authentication = {
            "type": "basic",
            "username": parts["user"],
            "password": PASSWORD,
        }
        self._connection = psycopg.connect(url, autocommit=True)
        self.rows(TABLE)

    def rows(self, statement: str) -> list[Any]:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def table() -> Iterator[Table]:
    with (
        new_database("sink") as url,
        relay_to(str(Path(str(conninfo_to_dict(url)["host"])) / SOCKET)) as relay,
    ):
        table = Table(url, relay)
        yield table
        table.close()


@pytest.fixture
def shop(hub: LiveHub, zone: LiveZone) -> LiveZone:
    hub.start_callbacks()
    zone.create_stream("orders")
    return zone


def create(shop: LiveZone, table: Table, **more: Any) -> Answer:
    body = {
        "kind": "postgresql",
        "url": table.url,
        "settings": SETTINGS,
        "authentication": table.authentication,
        **more,
    }
    return shop.hub.call("POST", "/v1/endpoints", body, key=shop.admin)


def shown(shop: LiveZone, endpoint: int) -> dict[str, Any]:
    found: dict[str, Any] = shop.hub.call("GET", f"/v1/endpoints/{endpoint}", key=shop.admin).json
    return found


def checked(shop: LiveZone, table: Table, **more: Any) -> dict[str, Any]:
    """Create an endpoint; return it after its check."""
    made = create(shop, table, **more)
    assert made.status == 201, made
    id = made.json["id"]
    until(lambda: shown(shop, id)["verification"]["state"] != "pending")
    return shown(shop, id)


def connected(shop: LiveZone, table: Table, **more: Any) -> int:
    """Create an endpoint that gets all events of the stream; return its id."""
    endpoint = checked(shop, table, **more)
    assert endpoint["enabled"], endpoint["verification"]
    shop.register({"streams": ["orders"], "domain": "shop", "endpoint": endpoint["id"]})
    id: int = endpoint["id"]
    return id


def order(total: Any) -> dict[str, Any]:
    return {"domain": "shop", "type": "order.placed", "attributes": {"total": total}}


def until(condition: Callable[[], Any]) -> Any:
    until_s = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < until_s, "it did not come"
        time.sleep(0.05)
    return found


def deliveries(shop: LiveZone, endpoint: int, state: str) -> list[dict[str, Any]]:
    path = f"/v1/deliveries?endpoint={endpoint}&state={state}&limit=100"
    found: list[dict[str, Any]] = shop.hub.call("GET", path, key=shop.admin).json["items"]
    return found


def test_events_become_rows_in_order_with_the_values_of_their_fields(
    shop: LiveZone, table: Table
) -> None:
    endpoint = connected(shop, table, ordered=True)
    shop.emit("orders", [order(number) for number in range(40)])
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 40)
    rows = table.rows("SELECT sequence, total, document->>'id' = id, at FROM events ORDER BY place")
    assert [row[:3] for row in rows] == [(number + 1, number, True) for number in range(40)]
    assert all(row[3] is not None for row in rows)
    [document] = table.rows("SELECT document FROM events WHERE sequence = 7")[0]
    assert document["event"]["type"] == "order.placed"
    assert shown(shop, endpoint)["health"]["state"] == "ok"
    one = deliveries(shop, endpoint, "delivered")[0]["id"]
    attempts = shop.hub.call("GET", f"/v1/deliveries/{one}", key=shop.admin).json["attempts"]
    assert attempts[0]["request"].startswith('INSERT INTO "public"."events"')
    assert PASSWORD not in str(attempts)


def test_a_worker_killed_while_the_server_inserts_loses_and_doubles_nothing(
    hub: LiveHub, shop: LiveZone, table: Table
) -> None:
    endpoint = connected(shop, table)
    with psycopg.connect(table.direct_url) as lock:
        lock.execute("LOCK TABLE events IN EXCLUSIVE MODE")
        shop.emit("orders", [order(number) for number in range(20)])
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'events'::regclass"
        until(lambda: table.rows(waiting))
        for worker in hub.workers:
            worker.kill()
    until(lambda: table.rows("SELECT 1 FROM events"))  # the server commits for the dead workers
    for worker in hub.workers:
        worker.start()
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 20)
    assert [row for [row] in table.rows("SELECT sequence FROM events ORDER BY 1")] == [
        *range(1, 21)
    ]


def test_an_event_that_the_table_refuses_is_a_dead_letter_and_the_others_are_stored(
    shop: LiveZone, table: Table
) -> None:
    pairs = {"events_max": 2}  # a pair that failed is repeated one by one
    endpoint = connected(shop, table, retry_schedule=[1, 1], batch=pairs)
    shop.emit("orders", [order(1), order(5000), order("many"), order(2)])
    until(lambda: len(deliveries(shop, endpoint, "dead_lettered")) == 2)
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 2)
    assert table.rows("SELECT total FROM events ORDER BY total") == [(1,), (2,)]
    last = [one["last_outcome"] for one in deliveries(shop, endpoint, "dead_lettered")]
    assert last == ["rejected", "rejected"]
    table.rows("ALTER TABLE events DROP CONSTRAINT events_total_check")
    run = shop.hub.call(
        "POST", f"/v1/endpoints/{endpoint}/recover", {"outcome": "rejected"}, key=shop.admin
    )
    assert run.status in (201, 202), run
    until(lambda: table.rows("SELECT 1 FROM events WHERE total = 5000"))


def test_refused_events_do_not_delay_the_others_of_their_batch(
    shop: LiveZone, table: Table
) -> None:
    endpoint = connected(shop, table, retry_schedule=[])
    null = {**order(3), "body": "a\0b"}
    with psycopg.connect(table.direct_url) as lock:  # so that all are in one batch
        lock.execute("LOCK TABLE events IN EXCLUSIVE MODE")
        shop.emit("orders", [order(1), order(5000), *map(order, range(4, 20)), null, order(2)])
        until(lambda: len(deliveries(shop, endpoint, "pending")) == 20)
    dead = until(lambda: len(deliveries(shop, endpoint, "dead_lettered")) == 2)
    assert dead
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 18)
    assert len(table.rows("SELECT 1 FROM events")) == 18
    words = [
        shop.hub.call("GET", f"/v1/deliveries/{one['id']}", key=shop.admin).json["attempts"]
        for one in deliveries(shop, endpoint, "dead_lettered")
    ]
    assert {attempts[0]["response"][:20] for attempts in words} == {
        "unsupported Unicode ",
        "new row for relation",
    }


def test_a_statement_that_takes_too_long_is_ended_and_tried_again(
    shop: LiveZone, table: Table
) -> None:
    endpoint = connected(shop, table, timeout_s=1, retry_schedule=[1, 1, 1, 1])
    with psycopg.connect(table.direct_url) as lock:
        lock.execute("LOCK TABLE events IN EXCLUSIVE MODE")
        shop.emit("orders", order(1))
        until(lambda: shown(shop, endpoint)["health"]["outcome"] == "timeout")
    until(lambda: deliveries(shop, endpoint, "delivered"))
    assert table.rows("SELECT total FROM events") == [(1,)]


def test_it_connects_again_after_the_server_closed_the_connection(
    shop: LiveZone, table: Table
) -> None:
    endpoint = connected(shop, table, retry_schedule=[])
    shop.emit("orders", order(1))
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 1)
    table.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'eventhub' AND datname = current_database()"
    )
    shop.emit("orders", order(2))
    until(lambda: len(deliveries(shop, endpoint, "delivered")) == 2)
    assert len(table.rows("SELECT 1 FROM events")) == 2


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE events", 'relation "public.events" does not exist'),
        ("ALTER TABLE events DROP COLUMN total", 'column "total"'),
        ("ALTER TABLE events DROP CONSTRAINT events_pkey", "no unique or exclusion constraint"),
        ("ALTER TABLE events ADD COLUMN owner text NOT NULL", "owner"),
    ],
)
def test_a_table_that_cannot_take_events_is_named_at_the_check(
    shop: LiveZone, table: Table, statement: str, words: str
) -> None:
    table.rows(statement)
    endpoint = checked(shop, table)
    assert (endpoint["enabled"], endpoint["reason"]) == (False, "unverified")
    verification = endpoint["verification"]
    assert (verification["state"], verification["outcome"]) == ("failed", "rejected")
    assert words in verification["detail"]


def test_columns_that_repeat_a_large_event_are_bounded(shop: LiveZone, table: Table) -> None:
    names = [f"c{number}" for number in range(40)]
    table.rows(f"CREATE TABLE wide (id text PRIMARY KEY, {' jsonb, '.join(names)} jsonb)")
    settings = {"table": "wide", "columns": {"id": "/id", **dict.fromkeys(names, "")}}
    endpoint = connected(shop, table, settings=settings, retry_schedule=[])
    shop.emit("orders", {**order(1), "body": "x" * 900_000})
    [one] = until(lambda: deliveries(shop, endpoint, "dead_lettered"))
    found = shop.hub.call("GET", f"/v1/deliveries/{one['id']}", key=shop.admin).json
    assert "more than 32 MiB" in found["attempts"][0]["response"], found


def test_a_private_database_is_refused(shop: LiveZone, table: Table) -> None:
    answer = create(shop, table, url="postgresql://10.1.2.3:5432/shop")
    answer.refused(400, "refused_address")


def test_the_password_is_never_shown_and_is_bound_to_its_host(
    hub: LiveHub, shop: LiveZone, table: Table
) -> None:
    made = checked(shop, table)
    assert PASSWORD not in str(made)
    assert made["authentication"]["username"] == table.authentication["username"]
    path = f"/v1/endpoints/{made['id']}"
    moved = hub.call("PATCH", path, {"url": "postgresql://db.example/shop"}, key=shop.admin)
    moved.refused(409, "credentials_bound")
    changed = hub.call(
        "PATCH", path, {"settings": {"table": "others", "columns": {"id": "/id"}}}, key=shop.admin
    )
    assert (changed.json["enabled"], changed.json["reason"]) == (False, "unverified")
    until(lambda: shown(shop, made["id"])["verification"]["state"] == "failed")


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("url", {"url": "https://db.example/shop"}),
        ("url", {"url": "postgresql://me:word@db.example/shop"}),
        ("url", {"url": "postgresql://db.example:54x/shop"}),
        ("url", {"url": "postgresql://db。example/shop"}),
        ("url", {"url": "postgresql://db.example/shop?sslmode=bogus"}),
        ("settings", {"settings": {"table": "é" * 32}}),
        ("settings", {"settings": {"table": "events", "columns": {"number": "/sequence"}}}),
        ("settings.columns", {"settings": {"table": "events", "columns": {"id": "id"}}}),
        ("settings.columns", {"settings": {"table": "t", "columns": {"": "/id"}}}),
        ("settings.columns", {"settings": {"table": "t", "columns": {"id": "/id", "x": "/\0"}}}),
        ("settings", {"settings": {"table": "events", "sslrootcert": "no certificate"}}),
        ("settings.word", {"settings": {"table": "events", "word": 1}}),
        ("authentication.type", {"authentication": {"type": "bearer", "token": "word"}}),
        ("headers", {"headers": {"x-word": "word"}}),
        ("format", {"format": "cloudevents_binary"}),
        ("handshake", {"handshake": "challenge"}),
        ("kind", {"kind": "mysql"}),
    ],
)
def test_fields_that_a_table_does_not_have_are_refused(
    shop: LiveZone, table: Table, field: str, more: dict[str, Any]
) -> None:
    answer = create(shop, table, **more)
    assert answer.status == 400, answer
    assert answer.json["position"]["field"].startswith(field), answer.json
