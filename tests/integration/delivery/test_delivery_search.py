"""Searches of deliveries: each filter finds what it names, in pages that examine a bounded
number.
"""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from eventhub.access.models import Client
from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from tests.integration.access_world import EVERYTHING, ApiCaller, caller_with, refused
from tests.integration.delivery.test_overview import endpoint, run

pytestmark = pytest.mark.django_db
COUNT = 20


@pytest.fixture
def manager() -> ApiCaller:
    """Return the manager of a zone with the events 1 to 20 of `lines`, each delivered to two
    endpoints.
    """
    found = caller_with(*EVERYTHING, zone_name="plant")
    assert found.put("/v1/streams/lines", {}).status_code == 201
    owner = Client.objects.get(zone__name="plant")
    [(stream, segment, partition)] = run(
        "SELECT s.id, g.id, g.partition_id FROM streams s JOIN segments g ON g.stream_id = s.id"
        " WHERE s.name = 'lines'"
    )
    run("UPDATE heads SET sequence = %s WHERE stream_id = %s", COUNT, stream)
    run(f"CREATE TABLE IF NOT EXISTS deliveries_for_test PARTITION OF deliveries FOR VALUES IN"
        f" ({partition})")  # fmt: skip
    for n in range(1, COUNT + 1):
        event = Event("shop", "moved" if n % 5 else "stopped", {"n": n}, id=f"id-{n}")
        run(
            "INSERT INTO events (partition_id, segment_id, sequence, mask, payload, appended_at)"
            " VALUES (%s, %s, %s, 1, %s, now())",
            *(partition, segment, n, encode(event)),
        )
    for _ in range(2):
        run(
            "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
            " zone_id, registrations, state, last_outcome, last_status, created_at)"
            " SELECT %s, %s, %s, n, %s, %s, '{1}',"
            " CASE WHEN n %% 2 = 0 THEN 'dead_lettered' ELSE 'delivered' END,"
            " CASE WHEN n %% 4 = 0 THEN 'status' WHEN n %% 2 = 0 THEN 'timeout' END,"
            " CASE WHEN n %% 4 = 0 THEN 503 WHEN n %% 2 = 1 THEN 204 END,"
            " '2026-01-01'::timestamptz + n * interval '1 hour'"
            " FROM generate_series(1, 20) AS n",
            *(partition, endpoint(owner.zone), segment, stream, owner.zone_id),
        )
    return found


def found(manager: ApiCaller, query: str) -> list[int]:
    """Return the sequences of all pages."""
    sequences: list[int] = []
    after: str | None = ""
    while after is not None:
        page: dict[str, Any] = manager.get(f"/v1/deliveries?{query}{after}").json()
        assert "items" in page, page
        sequences += [item["sequence"] for item in page["items"]]
        after = page["next"] and f"&after={page['next']}"
    return sequences


def both(*sequences: int) -> list[int]:
    """Return what a search finds that is answered for each of the two endpoints."""
    return [n for n in sequences for _ in range(2)]


@pytest.mark.parametrize("limit", ["", "&limit=3"])
@pytest.mark.parametrize("scanned", [10_000, 6])
def test_every_filter_finds_what_it_names(
    manager: ApiCaller, monkeypatch: pytest.MonkeyPatch, limit: str, scanned: int
) -> None:
    monkeypatch.setattr(limits, "DELIVERIES_SCANNED_MAX", scanned)
    monkeypatch.setattr(limits, "DELIVERIES_DECODED_MAX", scanned)
    cases = {
        "stream=lines": both(*range(20, 0, -1)),
        "stream=lines&state=delivered&until=2026-01-01T05:00:00Z": both(5, 3, 1),
        "stream=lines&type=stopped": both(20, 15, 10, 5),
        "stream=lines&event=id-7": both(7),
        "state=dead_lettered&status=503": both(20, 16, 12, 8, 4),
        "state=dead_lettered&outcome=timeout&since=2026-01-01T10:00:00Z": both(18, 14, 10),
        "state=dead_lettered&stream=lines&type=stopped": both(20, 10),
        "state=discarded": [],
        "state=dead_lettered&event=id-6&client=tester": both(6),
    }
    [(first,)] = run("SELECT min(endpoint_id) FROM deliveries")
    cases |= {
        f"endpoint={first}&status=204&type=stopped": [15, 5],
        f"endpoint={first}&event=id-3": [3],
        f"endpoint={first}&stream=lines&sequence=3": [3],
    }
    for query, expected in cases.items():
        assert found(manager, f"{query}{limit}") == expected, query


def test_a_stream_with_too_many_endpoints_is_refused(
    manager: ApiCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DELIVERY_SEARCH_ENDPOINTS_MAX", 1)
    problem = refused(manager.get("/v1/deliveries?stream=lines"), 409, "limit_reached")
    assert problem["limit"] == 1 and problem["position"] == {"field": "stream"}


@pytest.mark.parametrize("scope", ["stream=lines", "state=dead_lettered"])
def test_a_search_by_event_does_not_reveal_a_hidden_one(manager: ApiCaller, scope: str) -> None:
    """Its type and id are guessed otherwise."""
    hidden = Event("shop", "secret", {"n": 6}, id="id-6", audience=("ops",))
    run("UPDATE events SET payload = %s WHERE sequence = 6 AND segment_id IN"
        " (SELECT segment_id FROM deliveries)", encode(hidden))  # fmt: skip
    assert found(manager, f"{scope}&type=secret") == []
    assert found(manager, f"{scope}&event=id-6") == []
    member = caller_with(*EVERYTHING, zone_name="plant", client_name="guard")
    Client.objects.filter(zone__name="plant", name="guard").update(groups=["ops"])
    assert found(member, f"{scope}&type=secret") == both(6)


def test_a_page_of_a_large_backlog_reads_a_bounded_number_although_statistics_say_that_it_is_small(
    manager: ApiCaller,
) -> None:
    run("ANALYZE deliveries_for_test")
    [(endpoint_id,)] = run("SELECT max(endpoint_id) FROM deliveries_for_test")
    fill(endpoint_id)
    read = (
        "SELECT sum(seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_xact_user_tables"
        " WHERE relname = 'deliveries_for_test'"
    )
    [(before,)] = run(read)
    page = manager.get(f"/v1/deliveries?endpoint={endpoint_id}&limit=50").json()
    [(after,)] = run(read)
    assert [item["sequence"] for item in page["items"]] == [*range(40020, 39970, -1)]
    assert after - before < 2 * limits.DELIVERIES_SCANNED_MAX


def fill(endpoint_id: int) -> None:
    """Insert 40,000 pending deliveries, as those of the last event."""
    run(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " zone_id, registrations, state)"
        " SELECT partition_id, endpoint_id, segment_id, sequence + n, stream_id, zone_id, '{1}',"
        " 'pending' FROM generate_series(1, 40000) AS n, deliveries_for_test"
        " WHERE endpoint_id = %s AND sequence = 20",
        endpoint_id,
    )


def test_a_page_of_an_endpoint_does_not_read_the_backlog_of_others(
    manager: ApiCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither from the newest on nor from a position."""
    monkeypatch.setattr(limits, "DELIVERIES_SCANNED_MAX", 100)
    [(first, second)] = run("SELECT min(endpoint_id), max(endpoint_id) FROM deliveries_for_test")
    for endpoint_id in (first, second):
        fill(endpoint_id)
    query = f"/v1/deliveries?endpoint={first}&state=pending&limit=5"
    expected, after = 40_020, ""
    for _ in range(3):
        with CaptureQueriesContext(connection) as done:
            page = manager.get(f"{query}{after}").json()
        assert [one["sequence"] for one in page["items"]] == [*range(expected, expected - 5, -1)]
        assert sum(map(blocks, done.captured_queries)) < 150  # an index has some 300 of the others
        expected, after = expected - 5, f"&after={page['next']}"


def blocks(query: dict[str, Any]) -> int:
    """Return the blocks that a statement reads; 0 if it does not read deliveries."""
    if not query["sql"].startswith("SELECT") or '"deliveries"' not in query["sql"]:
        return 0
    [(plan,)] = run("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query["sql"].replace("%", "%%"))
    found = json.loads(plan)[0]["Plan"] if isinstance(plan, str) else plan[0]["Plan"]
    return int(found["Shared Hit Blocks"] + found["Shared Read Blocks"])


def test_a_page_of_an_endpoint_continues_in_older_partitions(
    manager: ApiCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pages that end inside a partition and at its end, and when what is examined ends there."""
    [(endpoint_id, partition)] = run(
        "SELECT min(endpoint_id), min(partition_id) FROM deliveries_for_test"
    )
    newer = int(partition) + 1_000
    run(f"CREATE TABLE deliveries_of_newer PARTITION OF deliveries FOR VALUES IN ({newer})")
    run(
        "UPDATE deliveries SET partition_id = %s WHERE endpoint_id = %s AND sequence > 15",
        *(newer, endpoint_id),
    )
    newest = [*range(20, 0, -1)]
    for limit in (3, 5, 7, 50):
        query = f"endpoint={endpoint_id}&limit={limit}"
        assert found(manager, query) == newest
        for scanned in (1, 4, 5, 6, 10_000):
            monkeypatch.setattr(limits, "DELIVERIES_SCANNED_MAX", scanned)
            assert found(manager, f"{query}&status=503") == [20, 16, 12, 8, 4]
            assert found(manager, f"{query}&since=2026-01-01T01:00:00Z") == newest
