"""The list of failed deliveries of all endpoints costs only what its page does, for every
reader.
"""

from itertools import chain

import pytest

from eventhub.access.models import Client
from eventhub.base import limits
from tests.integration.access_world import EVERYTHING, caller_with
from tests.integration.delivery.test_overview import endpoint, run

pytestmark = pytest.mark.django_db


def test_a_page_scans_a_bounded_number_and_the_next_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three of 20 dead-lettered deliveries belong to the reading client, none of them recent."""
    monkeypatch.setattr(limits, "DELIVERIES_SCANNED_MAX", 6)
    manager = caller_with(*EVERYTHING, zone_name="plant")
    assert manager.put("/v1/streams/lines", {}).status_code == 201
    owner = Client.objects.get(zone__name="plant")
    theirs, own = endpoint(owner.zone), endpoint(owner.zone)
    quiet = Client.objects.create(zone=owner.zone, name="quiet")
    run("UPDATE endpoints SET client_id = %s WHERE id = %s", quiet.pk, own)
    run("CREATE TABLE deliveries_for_test PARTITION OF deliveries FOR VALUES IN (77)")
    run(
        "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
        " zone_id,"
        " registrations, state) SELECT 77, CASE WHEN n IN (2, 3, 9) THEN %s ELSE %s END, g.id, n,"
        " s.id, s.zone_id, '{1}', 'dead_lettered' FROM streams s"
        " JOIN segments g ON g.stream_id = s.id,"
        " generate_series(1, 20) AS n WHERE s.name = 'lines'",
        *(own, theirs),
    )

    def pages(query: str) -> list[list[int]]:
        found, after = [], ""
        while after is not None:
            page = manager.get(f"/v1/deliveries?state=dead_lettered{query}{after}").json()
            found.append([item["sequence"] for item in page["items"]])
            after = page["next"] and f"&after={page['next']}"
        return found

    found = pages("&client=quiet")
    assert list(chain(*found)) == [9, 3, 2]
    assert found[0] == [], "of the first it looked at none is theirs, and there is more behind them"
    assert list(chain(*pages("&limit=4"))) == list(range(20, 0, -1))
