"""The removal of a deleted stream in many runs of the task."""

from pathlib import Path

import pytest

from delivery.deletion import DataStores, Deletion
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.event.protobuf_codec import decode
from tests.integration.callbacks_world import CallbacksWorld
from tests.integration.forward_world import World, world_database

forwarding = pytest.fixture(world_database)


def test_runs_that_end_early_get_past_the_deliveries_of_other_streams(
    world: CallbacksWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that examined all deliveries again from the first one never came to the end of many."""
    monkeypatch.setattr(limits, "DELETION_RUN_S_MAX", 0.0)  # one step in each run
    monkeypatch.setattr(limits, "ERASE_ROWS_MAX", 3)
    others, deleted = world.events(20), world.events(5)
    endpoints = [world.endpoint(f"https://hooks.example/{n}") for n in range(2)]
    for sent in (others, deleted):
        for endpoint in endpoints:
            world.deliver(sent, endpoint)
    world.sql("UPDATE streams SET deletes_at = now() WHERE id = %s", deleted.stream_id)
    task, stores = Deletion(SystemClock()), DataStores(tmp_path)
    runs = 0
    while task.run(world.url, stores):
        runs += 1
        assert runs < 100
    query = "SELECT erased_at IS NOT NULL, erased_events, erased_deliveries FROM streams"
    assert world.sql(f"{query} WHERE id = %s", deleted.stream_id) == [(True, 5, 10)]
    left = "SELECT stream_id, count(*) FROM deliveries GROUP BY stream_id"
    assert world.sql(left) == [(others.stream_id, 40)]


def test_the_announcement_counts_the_registrations_of_all_runs(
    forwarding: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted those of the last run alone. One of four is on another stream, too."""
    monkeypatch.setattr(limits, "DELETION_RUN_S_MAX", 0.0)
    monkeypatch.setattr(limits, "END_REGISTRATIONS_MAX", 1)
    orders, others = forwarding.stream(), forwarding.stream()
    forwarding.register(orders, forwarding.endpoints(3))
    forwarding.register([orders, others], forwarding.endpoints())
    forwarding.sql("INSERT INTO registration_owners VALUES (%s, 4)", forwarding.client)
    forwarding.sql("UPDATE streams SET deletes_at = now() WHERE id = %s", orders)
    runs = 0
    while Deletion(SystemClock()).run(forwarding.url, DataStores(tmp_path)):
        runs += 1
        assert runs < 100
    announced = [
        event.attributes
        for [payload] in forwarding.sql("SELECT payload FROM events ORDER BY sequence")
        if (event := decode(payload)).type == "stream.deleted"
    ]
    assert [one["registrations"] for one in announced] == [4]
    left = "SELECT registrations FROM registration_owners WHERE client_id = %s"
    assert forwarding.sql(left, forwarding.client) == [(1,)]
