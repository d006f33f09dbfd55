"""Bounds of previews, and the streams of a list of dead letters."""

from contextlib import ExitStack

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from delivery.recovery import replays
from eventhub.access.models import Client
from eventhub.base import limits
from tests.integration.access_world import EVERYTHING, caller_with, refused
from tests.integration.delivery.test_overview import endpoint, run

pytestmark = pytest.mark.django_db


def test_previews_are_bounded_in_a_process() -> None:
    """Each takes a connection and seconds."""
    caller = caller_with(*EVERYTHING, zone_name="plant")
    assert caller.put("/v1/streams/lines", {}).status_code == 201
    owner = Client.objects.get(zone__name="plant")
    own = endpoint(owner.zone)
    body = {"endpoint": own, "streams": ["lines"]}
    states = {"states": ["dead_lettered"]}
    with ExitStack() as running:
        for _ in range(limits.REPLAY_PREVIEWS_PER_CLIENT_MAX):
            running.enter_context(replays._PREVIEWS.one(owner.pk))
        for path, asked in (
            ("/v1/replays/preview", body),
            (f"/v1/endpoints/{own}/recover/preview", states),
        ):
            answer = caller.post(path, asked)
            refused(answer, 429, "too_many_requests")
            assert answer["Retry-After"] == "1"
    answer = caller.post("/v1/replays/preview", {"endpoint": own})
    refused(answer, 400, "missing_field")


def test_dead_letters_of_a_narrow_key_are_found_by_its_streams() -> None:
    """Not by all segments of the zone."""
    manager = caller_with(*EVERYTHING, zone_name="plant")
    owner = Client.objects.get(zone__name="plant")
    to = endpoint(owner.zone)
    for name in ("lines.a", "lines_a", "robots"):
        assert manager.put(f"/v1/streams/{name}", {}).status_code == 201
    run("CREATE TABLE IF NOT EXISTS deliveries_for_test PARTITION OF deliveries FOR VALUES IN (77)")
    run(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " zone_id, registrations, state, finished_at)"
        " SELECT 77, %s, g.id, 1, s.id, s.zone_id, '{1}', 'dead_lettered', now()"
        " FROM streams s JOIN segments g ON g.stream_id = s.id WHERE s.zone_id = %s",
        *(to, owner.zone_id),
    )
    narrow = caller_with("listen:lines_*", "manage:*", zone_name="plant")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        [group] = narrow.get("/v1/dead-letters").json()["items"]
    assert group["deliveries"] == 1, "of lines_a alone"
    assert not [one["sql"] for one in queries if 'FROM "segments"' in one["sql"]]
    [group] = manager.get("/v1/dead-letters").json()["items"]
    assert group["deliveries"] == 3
