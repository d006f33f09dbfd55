"""A back-test finds the same as a dry run, wherever the events are stored, by their attributes and
their bodies, with and without Spark.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import java
from tests.acceptance.wire import EVENT
from tests.live import LiveHub, LiveZone

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def generated_code(hub: LiveHub) -> Iterator[None]:
    """Let Spark generate code for queries, as it does in production."""
    options = hub.env["JAVA_TOOL_OPTIONS"]
    hub.env["JAVA_TOOL_OPTIONS"] = options.replace(java.INTERPRETED, "")
    yield
    hub.env["JAVA_TOOL_OPTIONS"] = options


@pytest.fixture(autouse=True)
def no_runs(hub: LiveHub) -> Iterator[None]:
    yield
    hub.sql("DELETE FROM job_runs")


def declare(zone: LiveZone, name: str, **more: Any) -> None:
    body = {"schema": {"type": "object"}, **more}
    answer = zone.hub.call("PUT", f"/v1/types/shop/{name}", body, key=zone.admin)
    assert answer.status in (200, 201), answer


def fill(zone: LiveZone) -> None:
    """Emit 50 events: archived only, archived and live, and live only."""
    declare(zone, "order.placed")
    declare(zone, "order.gift", parent="order.placed")
    zone.create_stream("orders", segment_events_max=10, archive=True, filterable_data=True)
    for first in range(1, 51, 5):
        events = [
            {**EVENT, "version": "1", "type": "order.gift" if n % 4 == 0 else EVENT["type"],
             "attributes": {"n": n, "vip": n % 3 == 0}, "body": {"n": n}}
            for n in range(first, first + 5)
        ]  # fmt: skip
        assert zone.emit("orders", events).status == 200
        if first == 26:
            zone.hub.manage("archive", "run", "--stream", "orders")
    zone.hub.sql(
        "UPDATE segments SET tier = 'archived' WHERE first <= 11 AND stream_id ="
        " (SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id WHERE z.name = %s"
        " AND s.name = 'orders')",
        zone.name,
    )


def dry_run(zone: LiveZone, **filter: Any) -> dict[str, Any]:
    body = {"stream": "orders", "samples": 10, **filter}
    answer = zone.hub.call("POST", "/v1/filters/dry-run", body, key=zone.admin)
    assert answer.status == 200, answer
    return dict(answer.json)


def back_test(zone: LiveZone, by: str, **params: Any) -> dict[str, Any]:
    """Return the details of a back-test by the engine that the run names so."""
    given = {"zone": zone.name, "stream": "orders", **params}
    zone.hub.manage("sparkjob", "backtest", "--params", json.dumps(given))
    [run] = zone.hub.operate("GET", "/v1/jobs/backtest/runs?limit=1").json["items"]
    shown = zone.hub.operate("GET", f"/v1/jobs/backtest/runs/{run['id']}").json
    assert (shown["state"], shown["engine"].partition("[")[0]) == ("completed", by)
    names = {file["name"].partition("/")[0] for file in shown["files"]}
    assert names == {"report.html", "matches", "matches.csv", "segments"}
    report = zone.hub.operate("GET", f"/v1/jobs/backtest/runs/{run['id']}/files/report.html")
    assert b"currentColor" in report.body
    return dict(shown["details"])


@pytest.mark.slow
def test_a_backtest_and_a_dry_run_find_the_same(hub: LiveHub, zone: LiveZone) -> None:
    fill(zone)
    filter = {
        "language": "predicate",
        "filter": '(and (type "shop::order.placed") (or (= vip true) (> data.n 45)))',
    }
    dry = dry_run(zone, **filter, last=50)
    found = back_test(zone, "spark local", **filter, sample_max=10, engine="spark")
    assert back_test(zone, "local", **filter, sample_max=10) == found, "few events need no Spark"
    assert found["matched_events"] == dry["matched"] == 20
    assert found["searched_events"] == dry["looked_at"] == 50
    assert found["skipped"] == []
    first = dry["samples"]["first"][:10]
    for mine, other in zip(found["sample"], first, strict=True):
        assert mine["sequence"] == other["sequence"]
        assert mine["segment"] == other["segment"]
        assert mine["appended_at"] == other["appended_at"]
        assert mine["attributes"] == other["event"]["attributes"]
    assert {one["type"] for one in found["sample"]} == {"order.placed", "order.gift"}
