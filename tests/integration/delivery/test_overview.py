"""The overview of a zone: its own numbers, bounded counts, and access to it."""

from typing import Any

import pytest
from django.db import connection

from eventhub.access.models import Client, Zone
from eventhub.base import limits
from tests.integration.access_world import EVERYTHING, caller_with, refused, zone

pytestmark = pytest.mark.django_db


def run(query: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall()) if cursor.description else []


def endpoint(of: Zone, *, enabled: bool = True) -> int:
    owner = Client.objects.filter(zone=of).first()
    assert owner is not None
    [(made,)] = run(
        "INSERT INTO endpoints (zone_id, client_id, url, secret, enabled)"
        " VALUES (%s, %s, 'https://example.org/', '', %s) RETURNING id",
        of.pk, owner.pk, enabled,
    )  # fmt: skip
    return int(made)


def deliveries(endpoint_id: int, state: str, count: int, *, first: int, due: str = "0 s") -> None:
    """Insert this many rows in a partition of the test, half of them for an ordered endpoint."""
    run("CREATE TABLE IF NOT EXISTS deliveries_for_test PARTITION OF deliveries FOR VALUES IN (77)")
    run(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " registrations, state, ordered, next_attempt_at)"
        " SELECT 77, %s, 1, n, 1, '{1}', %s, n %% 2 = 0, now() + %s::interval"
        " FROM generate_series(%s::bigint, %s::bigint) AS n",
        endpoint_id, state, due, first, first + count - 1,
    )  # fmt: skip


def test_a_new_zone_is_empty() -> None:
    found = caller_with(*EVERYTHING, zone_name="plant").get("/v1/overview").json()
    assert [stream["name"] for stream in found["streams"]] == ["system"]
    assert found["events"] == 0
    assert found["backlog"] == {"pending": 0, "due": 0, "dead_lettered": 0}
    assert found["endpoints"] == {"enabled": 0, "disabled": 0, "failing": 0, "total": 0}
    assert found["registrations"] == 0


def test_streams_show_their_matched_sequence() -> None:
    manager = caller_with(*EVERYTHING, zone_name="plant")
    for name in ("lines", "robots"):
        assert manager.put(f"/v1/streams/{name}", {}).status_code == 201
    run("UPDATE heads SET sequence = 50 WHERE stream_id IN (SELECT id FROM streams WHERE name IN"
        " ('lines', 'robots'))")  # fmt: skip
    run("INSERT INTO forwarding (stream_id, segment, sequence) SELECT id, gen_random_uuid(), 42"
        " FROM streams WHERE name = 'robots'")  # fmt: skip
    found = manager.get("/v1/overview").json()
    assert found["events"] == 100
    by_name = {stream.pop("name"): stream for stream in found["streams"]}
    assert by_name["lines"] == {"last": 50, "matched": None, "lag": None}
    assert by_name["robots"] == {"last": 50, "matched": 42, "lag": 8}


def test_the_backlog_is_the_zones_own_in_all_states() -> None:
    manager = caller_with(*EVERYTHING, zone_name="plant")
    own = endpoint(zone("plant"))
    endpoint(zone("plant"), enabled=False)
    caller_with("listen:*", zone_name="other")
    other = endpoint(zone("other"))
    deliveries(own, "pending", 5, first=1)
    deliveries(own, "pending", 3, first=10, due="1 h")
    deliveries(own, "dead_lettered", 2, first=20)
    deliveries(own, "delivered", 4, first=30)
    deliveries(other, "pending", 9, first=1)
    deliveries(other, "dead_lettered", 9, first=20)
    found = manager.get("/v1/overview").json()
    assert found["backlog"] == {"pending": 8, "due": 5, "dead_lettered": 2}
    assert found["endpoints"] == {"enabled": 1, "disabled": 1, "failing": 0, "total": 2}


def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OVERVIEW_COUNT_MAX", 10)
    monkeypatch.setattr(limits, "OVERVIEW_PENDING_MAX", 20)
    manager = caller_with(*EVERYTHING, zone_name="plant")
    own = endpoint(zone("plant"))
    deliveries(own, "pending", 30, first=1)
    deliveries(own, "dead_lettered", 30, first=100)
    backlog = manager.get("/v1/overview").json()["backlog"]
    assert backlog == {"pending": 20, "due": None, "dead_lettered": 10}


def test_a_large_backlog_is_shown_as_it_was_last_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all clients of the zone, and without a look at the deliveries; a count from before
    deliveries were added does not hide them.
    """
    monkeypatch.setattr(limits, "OVERVIEW_PENDING_MAX", 10)
    manager = caller_with(*EVERYTHING, zone_name="plant")
    own, plant = endpoint(zone("plant")), zone("plant").pk
    deliveries(own, "pending", 9, first=1)
    counts = "INSERT INTO backlog_counts (client_id, zone_id, events, bytes) VALUES"
    run(f"{counts} (1, %s, 3, 1), (2, %s, 4, 1), (3, %s, 999, 1)", plant, plant, plant + 1)

    def backlog() -> Any:
        return manager.get("/v1/overview").json()["backlog"]

    assert backlog() == {"pending": 9, "due": 9, "dead_lettered": 0}
    deliveries(own, "pending", 21, first=10)
    assert backlog() == {"pending": 10, "due": None, "dead_lettered": 0}
    run("UPDATE backlog_counts SET events = 26 WHERE client_id = 2")
    assert backlog() == {"pending": 29, "due": None, "dead_lettered": 0}
    run("DELETE FROM deliveries")
    assert backlog() == {"pending": 29, "due": None, "dead_lettered": 0}
    run("DELETE FROM backlog_counts")
    assert backlog() == {"pending": 0, "due": 0, "dead_lettered": 0}


def test_a_large_backlog_of_an_endpoint_is_shown_as_it_was_last_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In this minute or the one before."""
    monkeypatch.setattr(limits, "OVERVIEW_PENDING_MAX", 10)
    manager = caller_with(*EVERYTHING, zone_name="plant")
    own = endpoint(zone("plant"))
    deliveries(own, "pending", 9, first=1)
    count = (
        "INSERT INTO endpoint_statistics (step_s, starts_at, endpoint_id, pending) VALUES"
        " (60, to_timestamp(floor(extract(epoch FROM now()) / 60 - %s) * 60), %s, %s)"
    )
    run(count, 2, own, 500)

    def pending() -> Any:
        return manager.get(f"/v1/endpoints/{own}/statistics").json()["pending"]

    assert pending() == 9
    deliveries(own, "pending", 21, first=10)
    assert pending() == 10
    run(count, 1, own, 28)
    assert pending() == 28
    run(count, 0, own, 31)
    assert pending() == 31


def test_counts_that_take_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OVERVIEW_COUNT_MS_MAX", 1)
    manager = caller_with(*EVERYTHING, zone_name="plant")
    deliveries(endpoint(zone("plant")), "pending", 60_000, first=1)
    answer = manager.get("/v1/overview")
    assert answer.status_code == 200
    assert answer.json()["backlog"]["pending"] is None


def test_the_overview_requires_managing_the_zone() -> None:
    refused(caller_with("listen:*", "manage:orders").get("/v1/overview"), 403, "forbidden")
    refused(caller_with(*EVERYTHING).get("/v1/overview?zone=nowhere"), 404, "not_found")
