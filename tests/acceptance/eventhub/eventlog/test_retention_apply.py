"""A retention plan made by Spark and applied: forbidden actions are refused, the others are done,
and readers of dropped events get the archive or a gap.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.eventhub.eventlog.test_retention import announced, first_of, get, read_all
from tests.acceptance.wire import numbered
from tests.live import LiveHub, LiveZone

pytestmark = pytest.mark.timeout(300)
SEGMENT = {"segment_events_max": 10}


@pytest.fixture(autouse=True)
def no_runs(hub: LiveHub) -> Iterator[None]:
    yield
    hub.sql("DELETE FROM job_runs")


def fill(zone: LiveZone, stream: str, **policy: Any) -> None:
    """Create a stream with three sealed segments and an open one of five events."""
    zone.create_stream(stream, **SEGMENT, **policy)
    for first in range(1, 36, 5):  # a batch goes into one segment
        events = numbered(first, first + 4)
        if policy.get("keyed"):
            events = [{**event, "key": f"k{first}"} for event in events]
        assert zone.emit(stream, events).status == 200


def plan(zone: LiveZone, *streams: str) -> int:
    """Make a plan that drops all sealed segments of these streams; return its run."""
    policies = {stream: {"retain_events": 1} for stream in streams}
    zone.hub.manage("retention", "plan", "--zone", zone.name,
                    "--params", json.dumps({"policies": policies}))  # fmt: skip
    [run] = zone.hub.operate("GET", "/v1/jobs/retention/runs?limit=1").json["items"]
    assert (run["state"], run["params"]["zone"]) == ("completed", zone.name)
    return int(run["id"])


def apply(hub: LiveHub, run: int) -> dict[str, Any]:
    answer = hub.operate("POST", f"/v1/jobs/retention/runs/{run}/apply", {})
    assert answer.status == 200, answer
    return dict(answer.json)


def outcomes_of(applied: dict[str, Any], stream: str) -> list[tuple[int, str, str, str]]:
    return [
        (one["first"], one["action"], one["outcome"], one["reason"])
        for one in applied["outcomes"]
        if one["stream"] == stream
    ]


def fill_all(zone: LiveZone) -> None:
    for stream, policy in (
        ("plain", {}), ("held", {}), ("keyed", {"keyed": True}),
        ("kept", {"archive": True}), ("torn", {"archive": True}), ("late", {"archive": True}),
        ("others", {}),
    ):  # fmt: skip
        fill(zone, stream, **policy)
    zone.hub.manage("archive", "run", "--stream", "kept")
    zone.hub.manage("archive", "run", "--stream", "torn")


def damage(hub: LiveHub, stream: str) -> None:
    """Truncate the second archived file, and delete the third manifest."""
    root = Path(hub.env["EVENTHUB_ARCHIVE_URL"])
    _, cut, lost = sorted(root.rglob(f"stream={stream}/*.json"))
    [file] = cut.parent.glob(f"{cut.stem}-*.parquet")
    os.truncate(file, 100)
    lost.unlink()


@pytest.mark.slow
def test_a_hold_set_after_the_plan_is_respected_and_the_rest_is_done(
    hub: LiveHub, zone: LiveZone
) -> None:
    fill_all(zone)
    before = get(zone, "/v1/streams/plain/events?from=oldest&limit=1")["events"][0]
    run = plan(zone, "plain", "held", "keyed", "kept", "torn", "late")
    shown = hub.operate("GET", f"/v1/jobs/retention/runs/{run}").json["details"]["actions"]
    assert {name: one["segments"] for name, one in shown.items()} == {
        "drop": 15, "archive": 3, "compact": 0, "keep": 10,
    }  # fmt: skip
    assert first_of(zone, "plain") == 1  # a plan changes nothing

    hold = hub.call("PUT", "/v1/streams/held", {"hold": "case 7"}, key=zone.admin)
    assert hold.status == 200
    damage(hub, "torn")
    said = hub.manage("retention", "apply", str(run), "--dry-run")
    assert "13 done, 5 refused, 0 unchanged (dry run: nothing was changed)" in said
    assert said.count("the stream has a hold") == 3
    assert said.count("the archived file is damaged") == 2
    assert first_of(zone, "plain") == 1

    applied = apply(hub, run)
    assert (applied["done"], applied["refused"], applied["remaining"]) == (13, 5, 0)
    dropped = [(first, "drop", "done", "") for first in (1, 11, 21)]
    assert outcomes_of(applied, "plain") == outcomes_of(applied, "keyed") == dropped
    assert outcomes_of(applied, "kept") == dropped
    assert outcomes_of(applied, "held") == [
        (first, "drop", "refused", "hold") for first in (1, 11, 21)
    ]
    damaged = [(first, "drop", "refused", "archive_damaged") for first in (11, 21)]
    assert outcomes_of(applied, "torn") == [*damaged, (1, "drop", "done", "")]
    assert outcomes_of(applied, "late") == [(first, "archive", "done", "") for first in (1, 11, 21)]
    firsts = {name: first_of(zone, name) for name in ("plain", "held", "kept", "late", "others")}
    assert firsts == {"plain": 31, "held": 1, "kept": 1, "late": 1, "others": 1}

    old = f"/v1/streams/plain/events?from={before['segment']}:{before['sequence']}"
    gap = hub.call("GET", old, key=zone.admin).refused(410, "gap")
    assert gap["missed"] == {"first": 2, "last": 30}
    assert len(read_all(zone, "kept")) == len(read_all(zone, "held")) == 35
    assert {one["reason"] for one in announced(zone, "stream.trimmed")} == {"plan"}
    assert sum(one["events"] for one in announced(zone, "stream.trimmed")) == 60  # plain, keyed
    tiers = get(zone, "/v1/streams/kept/segments")["items"]
    assert [one["tier"] for one in tiers] == ["archived"] * 3 + ["live"]
    assert {one["removal_reason"] for one in tiers} == {"plan", None}
    assert len(get(zone, "/v1/streams/keyed/state")["items"]) == 7
    [applied] = announced(zone, "retention.applied")
    assert applied == {"zone": zone.name, "run": run, "by": applied["by"], "actions": 18}

    hub.manage("archive", "run", "--stream", "late")
    again = apply(hub, run)
    assert (again["done"], again["refused"], again["unchanged"]) == (0, 5, 13)
    refused = [one["reason"] for one in again["outcomes"][:5]]  # they come first
    assert sorted(refused) == ["archive_damaged"] * 2 + ["hold"] * 3
    assert {one["outcome"] for one in again["outcomes"][5:]} == {"unchanged"}
    assert len(announced(zone, "stream.trimmed")) == 6
    assert len(read_all(zone, "torn")) == 35


def test_only_operators_apply_plans_and_only_existing_ones(hub: LiveHub, zone: LiveZone) -> None:
    path = "/v1/jobs/retention/runs/{}/apply"
    hub.call("POST", path.format(1), {}, key=zone.admin).refused(403, "forbidden")
    hub.operate("POST", path.format(10**9), {}).refused(404, "unknown_run")
    hub.operate("POST", path.format("x"), {}).refused(404, "unknown_run")
    hub.operate("POST", path.format(1), {"force": True}).refused(400, "unknown_field")
    waiting = hub.sql(
        "INSERT INTO job_runs (job, requested_by, params, state) VALUES ('retention', 'command',"
        " '{}', 'failed') RETURNING id"
    )[0][0]
    problem = hub.operate("POST", path.format(waiting), {}).refused(409, "no_plan")
    assert problem["state"] == "failed"
