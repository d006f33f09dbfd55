"""Matches of a stream's interest: clients that an audience excludes, and reports that derive the
event.
"""

from collections.abc import Callable

from delivery.forward.stream_matcher import CallbackMatcher
from eventhub.event.envelope import Event
from registrations.matching.spec import Spec
from registrations.matching.versions import StreamVersion

EVENT = Event("d", "t", {"n": 1})
SINCE = 10


def version(id: int, registration: int, endpoint: int, report: str | None = None) -> StreamVersion:
    client = f"client of {endpoint}"
    return StreamVersion(id, registration, client, endpoint, (Spec(),), SINCE, None, report=report)


def test_an_event_is_derived_only_if_all_matches_have_a_report() -> None:
    interest = CallbackMatcher(SINCE)
    interest.take(
        [
            version(101, 1, endpoint=1, report='["a"]'),
            version(102, 2, endpoint=1, report='["b"]'),
            version(103, 3, endpoint=2, report='["a"]'),
            version(104, 4, endpoint=2),
            version(105, 5, endpoint=3),
        ]
    )
    match = interest.match(EVENT, 11)
    assert match.endpoints == {1: [1, 2], 2: [3, 4], 3: [5]}
    assert match.shapes == {1: [101, 102]}


def test_the_report_of_the_version_that_holds_counts() -> None:
    interest = CallbackMatcher(SINCE)
    before = version(101, 1, endpoint=1, report='["a"]')
    interest.take([before])
    interest.take(
        [
            before._replace(until=20),
            version(102, 1, endpoint=1, report='["b"]')._replace(since=20, until=30),
            version(103, 1, endpoint=1)._replace(since=30),
        ]
    )
    for sequence, shape in ((11, [101]), (20, [101]), (21, [102]), (30, [102]), (31, None)):
        match = interest.match(EVENT, sequence)
        assert match.endpoints == {1: [1]}
        assert match.shapes.get(1) == shape
    interest.advance(30)
    assert interest.match(EVENT, 31) == ({1: [1]}, {}, set())
    assert len(interest) == 1, "what has ended leaves nothing behind"


def test_groups_are_read_only_for_events_with_an_audience() -> None:
    requested: list[str] = []

    def groups_of(client: str) -> frozenset[str]:
        requested.append(client)
        return frozenset({"ops"}) if client == "client of 1" else frozenset()

    counted: Callable[[str], frozenset[str]] = groups_of
    interest = CallbackMatcher(SINCE, groups_of=counted)
    interest.take([version(101, 1, endpoint=1), version(102, 2, endpoint=2)])
    assert interest.match(EVENT, 11).endpoints == {1: [1], 2: [2]}
    assert interest.match(EVENT._replace(destinations=("client of 2",)), 11).endpoints == {2: [2]}
    assert requested == []
    assert interest.match(EVENT._replace(audience=("ops",)), 11).endpoints == {1: [1]}
    assert sorted(requested) == ["client of 1", "client of 2"]
    both = EVENT._replace(audience=("ops",), destinations=("client of 2",))
    assert interest.match(both, 11).endpoints == {}
