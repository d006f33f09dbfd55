"""The last place of a quota of sockets, requested by two processes at the same moment."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from delivery.listening.socket_places import SQL
from eventhub.base import limits
from tests.integration.forward_world import World, world_database

world = pytest.fixture(scope="module")(world_database)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE application_name = 'second' AND wait_event_type = 'Lock'"
    " AND datname = current_database()"
)


def take(
    connection: psycopg.Connection[Any], zone: int, client: int, process: UUID
) -> tuple[Any, ...]:
    values = {"zone": zone, "client": client, "process": process, "sockets": 1}
    row = connection.execute(SQL["take"], {**values, "lost_s": limits.SOCKETS_LOST_S}).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize("of", ["client", "zone"])
def test_the_second_of_two_processes_waits_for_the_first_and_is_refused(
    world: World, of: str
) -> None:
    [endpoint] = world.endpoints()
    [(zone, client)] = world.sql("SELECT zone_id, client_id FROM endpoints WHERE id = %s", endpoint)
    owner = client if of == "client" else None
    insert = "INSERT INTO quotas (zone_id, client_id, kind, value) VALUES (%s, %s, 'sockets', 1)"
    world.sql(insert, zone, owner)
    try:
        with (
            psycopg.connect(world.url) as first,
            psycopg.connect(world.url, application_name="second", autocommit=True) as second,
            ThreadPoolExecutor(1) as pool,
        ):
            assert take(first, zone, client, uuid4())[0] is None
            taking = pool.submit(take, second, zone, client, uuid4())
            until_s = time.monotonic() + 60
            while world.sql(WAITING) != [(1,)]:
                assert time.monotonic() < until_s, "the second does not wait"
                time.sleep(0.01)
            first.commit()
            assert taking.result(60)[:2] == (of, 1)
        [(sockets,)] = world.sql("SELECT sum(sockets) FROM socket_counts")
        assert sockets == 1
    finally:
        world.sql("DELETE FROM quotas")
        world.sql("TRUNCATE web_processes, socket_counts")
