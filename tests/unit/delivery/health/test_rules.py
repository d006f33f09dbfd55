"""The components derived from facts: a table of faults, and what each role sees of them."""

from typing import Any

import pytest

from delivery.health.facts import HealthFacts
from delivery.health.rules import components_of, unknown
from eventhub.base import limits
from eventhub.http.health import DATABASE_DOWN, Component, HealthReport

NOW_US = 1_700_000_000_000_000
SECOND = 1_000_000
LONG_AGO_US = NOW_US - 3_600 * SECOND
WELL = HealthFacts(
    now_us=NOW_US,
    booted_at_us=LONG_AGO_US,
    forwarders=1,
    forwarder_us=NOW_US,
    workers=2,
    worker_us=NOW_US,
    beat_us=NOW_US,
    archiver_us=NOW_US,
    indexer_us=NOW_US,
    stranded=0,
    stranded_groups=0,
    stopped_groups=0,
    stranded_us=None,
    unarchived_us=None,
    unarchivable=0,
    unarchivable_code=None,
    unbuilt=0,
    unbuilt_code=None,
    unbuilt_us=None,
    requested_us=None,
)


def ago_us(seconds: float) -> int:
    return NOW_US - int(seconds * SECOND)


BAD: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("forwarders", "degraded", "No forwarder", {"forwarders": 0, "forwarder_us": None}),
    ("forwarders", "degraded", "3 streams", {"stranded": 3, "stranded_us": ago_us(40)}),
    ("forwarders", "degraded", "3 pattern groups have stopped", {"stopped_groups": 3}),
    ("forwarders", "degraded", "2 pattern", {"stranded_groups": 2, "stranded_us": ago_us(40)}),
    ("workers", "degraded", "No worker", {"workers": 0, "worker_us": ago_us(40)}),
    ("beat", "degraded", "timetable", {"beat_us": None}),
    ("beat", "degraded", "timetable", {"beat_us": ago_us(limits.HEALTH_TIMETABLE_S_MAX + 1)}),
    ("beat", "degraded", "timetable", {"beat_us": ago_us(-3_600)}),  # the clock stepped back
    ("deliveries", "degraded", "waited 75 s", {"overdue_us": ago_us(75)}),
    ("deliveries", "unknown", "in time", {"overdue": False}),
    ("archiver", "degraded", "archive_unavailable",
     {"unarchivable": 2, "unarchivable_code": "archive_unavailable"}),
    ("archiver", "degraded", "not started", {"archiver_us": ago_us(limits.HEALTH_TASK_S_MAX + 60)}),
    ("archiver", "degraded", "1,000 s", {"unarchived_us": ago_us(1_000)}),
    ("indexer", "degraded", "too_long", {"unbuilt": 1, "unbuilt_code": "too_long"}),
    ("indexer", "degraded", "no worker", {"indexer_us": None}),
    ("indexer", "degraded", "300 s", {"requested_us": ago_us(300)}),
)  # fmt: skip


def not_well(components: list[Component]) -> list[Component]:
    return [each for each in components if each.status not in ("ok", "off")]


def test_a_hub_with_all_components_alive_is_ok() -> None:
    soon = {"unarchived_us": ago_us(60), "requested_us": ago_us(5)}
    assert not_well(components_of(WELL._replace(**soon), archive=True)) == []


@pytest.mark.parametrize(("name", "status", "reason", "facts"), BAD)
def test_one_failed_component_is_named_with_the_reason(
    name: str, status: str, reason: str, facts: dict[str, Any]
) -> None:
    [found] = not_well(components_of(WELL._replace(**facts), archive=True))
    assert (found.name, found.status) == (name, status)
    assert reason in found.reason


def test_a_component_without_a_heartbeat_is_starting_for_a_while_after_the_hubs_start() -> None:
    silent = {"workers": 0, "worker_us": None, "beat_us": ago_us(9), "archiver_us": None}
    just = WELL._replace(**silent, booted_at_us=ago_us(5))
    by_name = {each.name: each.status for each in components_of(just, archive=True)}
    assert (by_name["workers"], by_name["archiver"]) == ("starting", "starting")
    later = just._replace(booted_at_us=ago_us(limits.HEALTH_SILENT_S_MAX + 1))
    by_name = {each.name: each.status for each in components_of(later, archive=True)}
    assert (by_name["workers"], by_name["archiver"]) == ("degraded", "starting")


def test_without_an_archive_nothing_is_wrong_with_the_archiver() -> None:
    found = components_of(WELL._replace(archiver_us=None, unarchived_us=LONG_AGO_US), archive=False)
    assert [each.status for each in found if each.name == "archiver"] == ["off"]


def test_only_dependencies_of_emit_and_listen_make_a_process_not_ready() -> None:
    report = HealthReport(NOW_US, (Component("database", "ok"), *components_of(WELL, archive=True)))
    assert report.overall() == "ready"
    degraded = report.replacing(unknown(since_us=NOW_US))
    assert degraded.overall() == "degraded"
    assert degraded.replacing([DATABASE_DOWN]).overall() == "not ready"


def test_everybody_sees_only_names_and_statuses() -> None:
    report = HealthReport(
        NOW_US, tuple(components_of(WELL._replace(overdue_us=ago_us(75)), archive=True))
    )
    public = report.public_json()
    assert {tuple(each) for each in public["components"]} == {("name", "status")}
    shown = {each["name"]: each for each in report.json()["components"]}
    assert shown["deliveries"]["since"] == "2023-11-14T22:12:05.000000Z"
    assert shown["forwarders"] == {
        "name": "forwarders", "status": "ok", "reason": None, "since": None
    }  # fmt: skip
