"""Connectors that read an outbox by logical replication, from a PostgreSQL server of its own."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from eventhub.supervisor.embedded import embedded
from eventhub.supervisor.postgres import SOCKET
from tests import prepared
from tests.acceptance.registrations import test_connectors
from tests.acceptance.registrations.test_connectors import (
    Outbox,
    create,
    events,
    ids,
    shown,
    until,
    writing,
)
from tests.live import LiveZone
from tests.live_processes import LiveProcess
from tests.tcp_relay import relay_to

process, zone = test_connectors.process, test_connectors.zone
SLOT = "SELECT pg_create_logical_replication_slot('hub', 'pgoutput')"
OPTIONS = "wal_level = logical\nfsync = off\nfull_page_writes = off\n"
_URLS = ("DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL")


@contextmanager
def without_urls() -> Iterator[None]:
    """Remove the servers of the tests from the environment: another one is started."""
    hidden = {name: os.environ.pop(name) for name in _URLS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server with the WAL that replication needs; yield its URL."""
    data = Path(tempfile.mkdtemp(prefix=prepared.PREFIX, dir="/tmp"))  # sockets' names are short
    try:
        assert prepared.fill(data)
        with (data / "postgres/postgresql.auto.conf").open("a") as file:
            file.write(OPTIONS)
        with without_urls():
            started = embedded(data)
            env = started.__enter__()
        yield env["DATABASE_URL"]
        started.__exit__(None, None, None)
    finally:
        shutil.rmtree(data, ignore_errors=True)


@pytest.fixture
def outbox(server: str) -> Iterator[Outbox]:
    folder = Path(str(conninfo_to_dict(server)["host"]))
    with relay_to(str(folder / SOCKET)) as relay:
        outbox = Outbox(server, relay)
        outbox.run("CREATE PUBLICATION hub FOR TABLE outbox WITH (publish = 'insert')")
        outbox.run(SLOT)
        yield outbox
        until(lambda: _dropped(outbox))
        outbox.run("DROP TABLE outbox CASCADE")
        outbox.run("DROP PUBLICATION hub")
        outbox.close()


def _dropped(outbox: Outbox) -> bool:
    outbox.relay.stop()
    outbox.relay.listen()
    try:
        outbox.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    except psycopg.errors.ObjectInUse:
        return False
    return True


def replicate(zone: LiveZone, outbox: Outbox, **fields: Any) -> dict[str, Any]:
    settings = {"table": "outbox", "slot": "hub", "publication": "hub", "body": "payload"}
    return create(zone, outbox, kind="outbox-replication", settings=settings, **fields)


def test_rows_come_in_the_order_of_commits_also_those_that_were_deleted(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    replicate(zone, outbox)
    with outbox.connect() as slow, slow.transaction():
        slow.execute("INSERT INTO outbox (aggregateid) VALUES ('slow')")
        outbox.run("WITH i AS (INSERT INTO outbox (aggregateid) VALUES ('quick')) SELECT 1")
        until(lambda: ids(zone) == ["2"])
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('gone')")
    outbox.run("DELETE FROM outbox")
    until(lambda: ids(zone) == ["2", "1", "3"])


def test_no_row_is_lost_repeated_or_reordered_when_the_process_is_killed(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    made = replicate(zone, outbox)
    writer = writing(outbox, 0, rows=500, per_s=500.0)
    outbox.run("INSERT INTO outbox (aggregateid) SELECT 'many' FROM generate_series(1, 1200)")
    for count in (300, 900):
        until(lambda: shown(zone, made)["rows"] >= count)  # noqa: B023 - it is called at once
        process.kill()
        process.start()
    writer.join()
    with outbox.connect() as connection:
        rows = connection.execute("SELECT id, aggregateid FROM outbox ORDER BY id").fetchall()
    until(lambda: shown(zone, made)["rows"] == len(rows))
    found = [(int(e["id"]), e["attributes"]["aggregateid"]) for e in events(zone)]
    assert sorted(found) == rows
    for own in ("0", "many"):
        assert [one for one in found if one[1] == own] == [one for one in rows if one[1] == own]


def test_the_values_of_a_row_are_those_of_to_jsonb(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    outbox.run(
        "ALTER TABLE outbox ADD a boolean DEFAULT true, ADD b numeric DEFAULT 1.50,"
        " ADD c float8 DEFAULT 'Infinity', ADD d bytea DEFAULT '\\x00ff', ADD e json DEFAULT '[1]',"
        " ADD f timestamp DEFAULT '2026-11-28 10:00:00', ADD g uuid DEFAULT gen_random_uuid(),"
        " ADD h bigint DEFAULT -9007199254740993, ADD i text DEFAULT 'é\"'"
    )
    settings = {"table": "outbox", "slot": "hub", "publication": "hub"}
    create(zone, outbox, kind="outbox-replication", settings=settings)
    outbox.run("INSERT INTO outbox (aggregateid, payload) VALUES ('1', '{\"n\": 1}')")
    with outbox.connect() as connection:
        [(expected,)] = connection.execute("SELECT to_jsonb(o)::text FROM outbox o").fetchall()
    [event] = until(lambda: events(zone))
    assert event["body"] == json.loads(expected)


def test_a_slot_that_was_created_again_stops_the_connector(
    zone: LiveZone, outbox: Outbox, process: LiveProcess
) -> None:
    made = replicate(zone, outbox)
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('1')")
    until(lambda: ids(zone) == ["1"])
    path = f"/v1/connectors/{made['id']}"
    zone.hub.call("PATCH", path, {"enabled": False}, key=zone.admin)
    until(lambda: _dropped(outbox))
    zone.hub.call("PATCH", path, {"enabled": True}, key=zone.admin)
    until(lambda: (shown(zone, made)["error"] or {}).get("code") == "no_slot")
    outbox.run("INSERT INTO outbox (aggregateid) VALUES ('missed')")
    outbox.run(SLOT)
    zone.hub.call("PATCH", path, {"on_refusal": "set_aside"}, key=zone.admin)
    until(lambda: (shown(zone, made)["error"] or {}).get("code") == "slot_moved")
    assert shown(zone, made)["state"] == "stopped"
    assert ids(zone) == ["1"]
