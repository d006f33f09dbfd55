"""Explanations of an event of a stream with very many registrations and no planner statistics."""

from collections.abc import Iterator

import psycopg
import pytest

from registrations.explain.statements import SQL, ExplainScope, read_statuses_sync
from tests.integration.forward_world import World, world_database

world = pytest.fixture(scope="module")(world_database)
COUNT, PAGE = 6_000, 100


@pytest.fixture
def connection(world: World) -> Iterator[psycopg.Connection]:
    with psycopg.connect(world.url, autocommit=True) as found:
        yield found


def test_the_cost_of_a_page_does_not_depend_on_the_number_of_registrations(
    world: World, connection: psycopg.Connection
) -> None:
    """The planner has no statistics of this stream, as right after a bulk load."""
    for table in ("registrations", "registration_versions", "barriers"):
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
    stream_id, other = world.stream(), world.stream()
    world.register(other, world.endpoints(3_000), "a")
    for table in ("registrations", "registration_versions", "barriers"):
        connection.execute(f"ANALYZE {table}".encode())
    world.register(stream_id, world.endpoints(1), "a")
    connection.execute(
        "WITH made AS ("
        "  INSERT INTO registrations (zone_id, client_id)"
        "  SELECT %s, %s FROM generate_series(1, %s) RETURNING id)"
        " INSERT INTO registration_versions"
        "   (registration_id, number, streams, language, filter, from_barrier)"
        " SELECT made.id, 1, v.streams, v.language, v.filter, v.from_barrier"
        "   FROM made, registration_versions v WHERE v.streams = ARRAY[%s]::bigint[]",
        (world.zone, world.client, COUNT, stream_id),
    )
    asked = ExplainScope(world.zone, world.client, stream_id, 1)
    ids: list[int] = []
    while more := [
        row[0]
        for row in connection.execute(
            SQL["registrations_naming"],
            {**asked._asdict(), "after": ids[-1] if ids else 0, "count": 4_000},
        )
    ]:
        ids += more
    assert len(ids) == len(set(ids)) == COUNT + 1
    assert ids == sorted(ids)
    page = ids[:PAGE]
    assert [one.registration for one in read_statuses_sync(connection, asked, page)] == page
    [(plan,)] = connection.execute(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT json) " + SQL["version_statuses"],
        {**asked._asdict(), "registrations": page},
    )
    read = plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
    assert read < 20 * PAGE, "a few for each, not all that name the stream"
