"""The judge of the benchmark `churn` finds what is missing, too much, twice, or out of place."""

from typing import Any

import pytest

from tests.benchmarks.judged import Coming, Version, calls_wrong, expected_of, places_wrong

EVENTS = [{"attributes": {"device": device}} for device in ("hot-1", "d1", "hot-1", "hot-1")]
FIRST = Version(7, "k", "hot-1", "0", since=11, until=13)
SECOND = Version(7, "k", "d1", "0", since=13, until=20)
VERSIONS = [FIRST, SECOND]
SEEN: dict[str, Any] = {
    "batches": [(0, 11, 14, 100, 110), (0, 15, 18, 200, 210)],
    "ops": [("create", "k"), ("change", "k"), ("end", "k")],
    "bulk": {"sent": [(1, 90), (2, 95), (3, 205)], "acknowledged": [(1, 105), (2, 108), (3, 220)]},
}
RIGHT = [("0", 13, [7]), ("0", 16, [7])]


def test_a_version_expects_its_matches_after_its_first_position_and_up_to_its_last() -> None:
    assert expected_of(VERSIONS, Coming(SEEN, [EVENTS], [])) == {("0", 13): [7], ("0", 16): [7]}


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (RIGHT, None),
        (RIGHT[:1], "never came"),
        ([*RIGHT, ("0", 14, [7])], "was not asked for"),
        ([*RIGHT, RIGHT[0]], "came 2 times"),
        ([RIGHT[0], ("0", 16, [8])], "came for [8] instead of [7]"),
        ([RIGHT[0], ("1", 16, [7])], "was not asked for"),
    ],
)
def test_received_calls_are_compared_with_the_expected_ones(
    calls: list[tuple[str, int, list[int]]], said: str | None
) -> None:
    found = calls_wrong(expected_of(VERSIONS, Coming(SEEN, [EVENTS], [])), calls)
    assert any(said in one for one in found) if said else not found


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        (VERSIONS, False),
        ([FIRST._replace(since=15), SECOND], True),  # acknowledged before 15 was sent
        ([FIRST, SECOND._replace(until=13)], True),  # 14 was acknowledged before its end was sent
        ([FIRST], True),  # never changed
    ],
)
def test_the_position_of_a_change_is_between_the_events_before_and_after_it(
    versions: list[Version], wrong: bool
) -> None:
    assert bool(places_wrong(versions, SEEN)) == wrong
