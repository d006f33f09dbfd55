"""The lanes of deliveries that are ordered by key, as forwarders write them."""

import pytest

from eventhub.event.envelope import Event
from registrations.endpoints.order_key import lane_number, order_path
from tests.integration.forward_world import Start, World, eventually, forwarders, world_database

world = pytest.fixture(scope="module")(world_database)
start = pytest.fixture(forwarders)


def order_by(world: World, endpoint: int, path: str) -> None:
    """Change the endpoint as the API does: with its event in `system`."""
    with world._transaction() as connection:
        connection.execute(
            "UPDATE endpoints SET ordered = true, order_by = %s WHERE id = %s", (path, endpoint)
        )
        world._tell(connection, "endpoint.changed", {"endpoint": endpoint}, 0)


def lanes(world: World, stream_id: int, endpoint: int) -> list[int | None]:
    rows = world.sql(
        "SELECT lane FROM deliveries WHERE stream_id = %s AND endpoint_id = %s ORDER BY sequence",
        *(stream_id, endpoint),
    )
    return [row[0] for row in rows]


def test_a_delivery_has_the_lane_of_its_key_at_once_after_a_change(
    world: World, start: Start
) -> None:
    stream_id = world.stream()
    by_key, by_stream, parallel = world.endpoints(3, ordered=False)
    order_by(world, by_stream, "")
    order_by(world, by_key, "n")
    world.register(stream_id, [by_key, by_stream, parallel])
    start()
    for _ in range(2):
        world.emit(stream_id, "a", "a", "a")
    eventually(lambda: len(lanes(world, stream_id, by_key)) == 6, "written")
    order_by(world, by_key, "@key")
    world.emit(stream_id, "a", key="x")
    eventually(lambda: len(lanes(world, stream_id, by_key)) == 7, "written")
    order_by(world, by_key, "")
    world.emit(stream_id, "a", key="x")
    eventually(lambda: len(lanes(world, stream_id, by_key)) == 8, "written")
    found = [lane_number(stream_id, Event("d", "a", {"n": n}), order_path("n")) for n in (0, 1, 2)]
    keyed = lane_number(stream_id, Event("d", "a", {}, key="x"), order_path("@key"))
    assert lanes(world, stream_id, by_key) == [*found, *found, keyed, None]
    assert lanes(world, stream_id, by_stream) == [None] * 8
    marked = world.sql(
        "SELECT endpoint_id, stream_id, touched, due_at <= now(), expires_at <= now() FROM lanes"
        " ORDER BY endpoint_id, stream_id"
    )
    expected = sorted([(by_stream, stream_id), *((by_key, each) for each in {*found, keyed}),
                       (by_key, stream_id)])  # fmt: skip
    assert marked == [(*each, True, True, True) for each in expected]
