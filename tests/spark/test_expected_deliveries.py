"""Expected deliveries: the forwarder's rules, recomputed over an index in files."""

from pathlib import Path
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.event.envelope import Event
from sparkjobs.expected_deliveries import (
    DeliveryMatcher,
    Doubt,
    ExecutorPaths,
    StreamInZone,
    matcher_of,
)
from sparkjobs.matchers import build_matcher
from tests.spark.history import NOW_US
from tests.spark.tables import write_tables

STREAM = StreamInZone(100, 7)
TIME_US = 1_800_000_000_000_000
LATE_US = int(limits.AUDIT_DECLARED_S * 1_000_000)


def version(id: int, filter: str, **fields: Any) -> dict[str, Any]:
    return {
        "stream_id": 100,
        "id": id,
        "registration_id": id * 10,
        "client_id": 1,
        "client": "desk",
        "zone_id": 7,
        "zone": "acme",
        "endpoint_id": 5,
        "language": "predicate",
        "filter": f'"{filter}"',
        "since": 0,
        "until": None,
        "group_id": None,
        "report": 0,
        "is_system": False,
        **fields,
    }


def matcher(folder: Path, *versions: dict[str, Any], **tables: Any) -> DeliveryMatcher:
    write_tables(folder / "inputs", tables)
    paths = ExecutorPaths(str(folder / "inputs"), str(folder / "work"), NOW_US)
    counts = build_matcher(paths.matcher(STREAM.stream_id), versions)
    assert counts[0] == len(versions)
    found = matcher_of(paths, STREAM)
    assert found is not None
    found.load(1, 100)
    return found


def expected(found: DeliveryMatcher, event: Event, sequence: int = 50) -> dict[int, list[int]]:
    return {
        each.endpoint_id: each.registrations for each in found.expected(event, sequence, TIME_US)
    }


def event(**attributes: Any) -> Event:
    return Event("shop", "order.paid", attributes)


def test_an_endpoint_gets_an_event_once_with_all_its_registrations(tmp_path: Path) -> None:
    found = matcher(
        tmp_path,
        version(3, "(= a 1)"),
        version(1, "(> a 0)"),
        version(2, "(= a 2)"),
        version(4, "(= a 1)", endpoint_id=6),
    )
    assert expected(found, event(a=1)) == {5: [10, 30], 6: [40]}
    assert expected(found, event(a=0)) == {}


@pytest.mark.parametrize(("sequence", "holds"), [(20, False), (21, True), (40, True), (41, False)])
def test_bounds_are_exact(tmp_path: Path, sequence: int, holds: bool) -> None:
    found = matcher(tmp_path, version(1, "(= a 1)", since=20, until=40))
    assert expected(found, event(a=1), sequence) == ({5: [10]} if holds else {})


@pytest.mark.parametrize(
    ("sequence", "holds"), [(20, True), (21, False), (40, False), (41, True), (61, False)]
)
@pytest.mark.parametrize("is_system", [False, True])
def test_a_suspended_group_matches_nothing(
    tmp_path: Path, sequence: int, holds: bool, is_system: bool
) -> None:
    suspensions = [
        {"stream_id": 100, "group_id": 2, "since": 20, "until": 40},
        {"stream_id": 100, "group_id": 2, "since": 60, "until": None},
        {"stream_id": 101, "group_id": 2, "since": 0, "until": None},
    ]
    one = version(1, "(= a 1)", group_id=2, is_system=is_system)
    found = matcher(tmp_path, one, suspensions=suspensions)
    assert expected(found, event(a=1), sequence) == ({5: [10]} if holds else {})


def test_on_system_a_zone_sees_its_own_events_and_those_of_the_hub(tmp_path: Path) -> None:
    found = matcher(tmp_path, version(1, "(exists a)", is_system=True))
    assert expected(found, event(a=1, zone="acme")) == {5: [10]}
    assert expected(found, event(a=1)) == {5: [10]}
    assert expected(found, event(a=1, zone="other")) == {}


def test_any_number_of_versions_is_matched_in_memory(tmp_path: Path) -> None:
    """Regression: an audit of a hub with more than 100,000 of them failed."""
    many = (version(id, f"(= a {id % 7})", is_system=True) for id in range(1, 100_002))
    paths = ExecutorPaths(str(tmp_path / "inputs"), str(tmp_path / "work"), NOW_US)
    assert build_matcher(paths.matcher(STREAM.stream_id), many) == (100_001, 100_001)
    write_tables(tmp_path / "inputs", {})
    found = DeliveryMatcher(paths, STREAM)
    found.load(1, 100)
    [registrations] = expected(found, event(a=3)).values()
    assert registrations == [id * 10 for id in range(3, 100_002, 7)]


def test_only_the_in_memory_versions_of_the_segment_are_loaded(tmp_path: Path) -> None:
    """Memory does not grow with the length of the history."""
    bounds = [(0, 40), (0, None), (20, 60), (40, 80), (60, None), (39, 40)]
    versions = [
        version(id, "(= a 1)", is_system=True, since=since, until=until)
        for id, (since, until) in enumerate(bounds, 1)
    ]
    found = matcher(tmp_path, *versions)
    for first, last, loaded in [
        (1, 20, [1, 2]),
        (41, 60, [2, 3, 4]),
        (61, 90, [2, 4, 5]),
        (31, 40, [1, 2, 3, 6]),
        (41, 41, [2, 3, 4]),
    ]:
        found.load(first, last)
        assert sorted(found.loaded) == loaded
        for sequence in (first, last):
            holding = [
                id * 10
                for id, (since, until) in enumerate(bounds, 1)
                if since < sequence and (until is None or sequence <= until)
            ]
            assert expected(found, event(a=1), sequence) == {5: holding}


def test_an_event_with_destinations_goes_only_to_them(tmp_path: Path) -> None:
    found = matcher(
        tmp_path,
        version(1, "(= a 1)"),
        version(2, "(= a 1)", client_id=2, client="guests", endpoint_id=6),
    )
    assert expected(found, event(a=1)._replace(destinations=("guests",))) == {6: [20]}


def test_an_audience_is_in_doubt(tmp_path: Path) -> None:
    clients = [
        {"id": 1, "zone_id": 7, "name": "desk", "groups": ["staff"]},
        {"id": 2, "zone_id": 7, "name": "guests", "groups": []},
        {"id": 3, "zone_id": 8, "name": "guests", "groups": ["staff"]},
    ]
    versions = [
        version(1, "(= a 1)"),
        version(2, "(= a 1)", client_id=2, client="guests", endpoint_id=6),
    ]
    found = matcher(tmp_path, *versions, clients=clients)
    doubtful = found.expected(event(a=1)._replace(audience=("staff",)), 50, TIME_US)
    doubts = {each.endpoint_id: each.doubt for each in doubtful}
    assert doubts == {5: Doubt.GROUPS, 6: Doubt.OTHER_GROUPS}
    [plain, _] = found.expected(event(a=1), 50, TIME_US)
    assert plain.doubt is None
    [expiring, _] = found.expected(event(a=1)._replace(expires_at_us=9), 50, TIME_US)
    assert expiring.doubt == Doubt.EXPIRES


def test_declared_types_match_filters_on_their_supertypes(tmp_path: Path) -> None:
    types = [
        {"zone_id": 7, "domain": "shop", "type": "order.paid", "versions": 2,
         "lineage": ["order.paid", "money"]},
        {"zone_id": 8, "domain": "shop", "type": "order.paid", "versions": 2,
         "lineage": ["order.paid", "other"]},
    ]  # fmt: skip
    versions = [
        version(1, '(type \\"shop::money\\")'),
        version(2, '(type \\"shop::other\\")', endpoint_id=6),
    ]
    found = matcher(tmp_path, *versions, types=types)
    assert expected(found, event()._replace(version="2")) == {5: [10]}
    assert expected(found, event()._replace(version="3")) == {}


@pytest.mark.parametrize(
    ("version_named", "appended_us", "doubts"),
    [
        ("1", TIME_US - 1, {5: Doubt.LATER_TYPES, 6: Doubt.TYPES, 8: Doubt.REGISTRATIONS}),
        ("1", TIME_US, {5: Doubt.TYPES, 6: Doubt.TYPES, 8: Doubt.REGISTRATIONS}),
        ("1", TIME_US + LATE_US, {5: None, 8: None}),
        ("2", TIME_US + LATE_US, {5: Doubt.LATER_TYPES, 6: Doubt.TYPES, 8: Doubt.REGISTRATIONS}),
        ("2", TIME_US + 3 * LATE_US, {5: None, 8: None}),
        ("", TIME_US - 1, {6: None, 8: None}),
    ],
)
def test_a_type_declared_after_the_event_leaves_a_doubt(
    tmp_path: Path, version_named: str, appended_us: int, doubts: dict[int, str | None]
) -> None:
    types = [
        {"zone_id": 7, "domain": "shop", "type": "order.paid", "versions": 2,
         "declared_us": [TIME_US, TIME_US + 2 * LATE_US], "lineage": ["order.paid", "money"]},
    ]  # fmt: skip
    versions = [
        version(1, '(type \\"shop::money\\")'),
        version(2, '(not (type \\"shop::money\\"))', endpoint_id=6),
        version(3, '(type \\"shop::order.paid\\")', endpoint_id=7, until=40),
        version(4, '(type \\"shop::order.paid\\")', endpoint_id=8),
        version(5, '(type \\"shop::money\\")', endpoint_id=8),
    ]
    found = matcher(tmp_path, *versions, types=types)
    deliveries = found.expected(event()._replace(version=version_named), 50, appended_us)
    assert {each.endpoint_id: each.doubt for each in deliveries} == doubts


def test_a_stream_without_callbacks_has_no_matcher(tmp_path: Path) -> None:
    paths = ExecutorPaths(str(tmp_path / "inputs"), str(tmp_path / "work"), NOW_US)
    assert matcher_of(paths, StreamInZone(9, 7)) is None
