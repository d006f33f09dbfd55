"""The console's back-test of a pattern: requested from its page, performed over archived and live
events. It finds as many matches as the dry run.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.desk import Desk
from tests.browser.test_jobs import SPARK_MS, runner, shown
from tests.live import LiveHub

TEXT = "{a: order.placed | $vip == FALSE}; {b: order.placed | $vip == TRUE} per $room within 1h"


@pytest.fixture(autouse=True)
def no_runs(hub: LiveHub, without_workers: None) -> Iterator[None]:
    yield
    hub.sql("DELETE FROM job_runs")


def fill(desk: Desk) -> None:
    """Emit 30 events: archived, archived and live, and live only; and create the pattern."""
    zone = desk.zone
    zone.create_stream("orders", segment_events_max=10, archive=True)
    for first in range(1, 31, 5):
        numbers = range(first, first + 5)
        events = [{"n": n, "room": n % 2, "vip": n % 9 == 0} for n in numbers]
        kind = {"domain": "shop", "type": "order.placed"}
        assert zone.emit("orders", [{**kind, "attributes": one} for one in events]).status == 200
        if first == 16:
            zone.hub.manage("archive", "run", "--stream", "orders")
    zone.hub.sql(
        "UPDATE segments SET tier = 'archived' WHERE first = 1 AND stream_id ="
        " (SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id WHERE z.name = %s"
        " AND s.name = 'orders')",
        zone.name,
    )
    given = {"client": "tester", "name": "rooms", "streams": ["orders"]}
    zone.hub.call("POST", "/v1/pattern-groups", given, key=zone.admin)
    pattern = {"client": "tester", "group": "rooms", "name": "vips", "language": "ready"}
    made = zone.hub.call("POST", "/v1/patterns", {**pattern, "text": TEXT}, key=zone.admin)
    assert made.status == 201, made


@pytest.mark.timeout(700)
def test_a_pattern_is_back_tested_from_its_page(desk: Desk) -> None:
    fill(desk)
    body = {"language": "ready", "text": TEXT, "stream": "orders", "count": 30}
    dry = desk.hub.call("POST", "/v1/patterns/dry-run", body, key=desk.zone.admin).json
    assert dry["matches"] == 3

    page = desk.open("patterns", "Patterns")
    page.get_by_role("button", name="vips").click()
    page.get_by_role("link", name="Back-test this pattern").click()
    expect(desk.heading("Back-test")).to_be_visible()
    expect(page.get_by_label("Pattern", exact=True).last).to_have_value(TEXT)
    desk.button("Run").click()
    with runner(desk, shown(page, "Back-test")):
        verdict = page.get_by_role("region", name="Verdict")
        verdict.wait_for(timeout=SPARK_MS)
    expect(verdict).to_contain_text("Matches: 3, notifications: 3")
    expect(verdict).to_contain_text("of 30 events")
