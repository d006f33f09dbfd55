"""Versions in a forwarder's matcher: suspensions, and a change of the strategy; digests of equal
filters; the names of the strategies.
"""

from typing import Any, get_args

import pytest

from delivery.forward.stream_matcher import CallbackMatcher
from eventhub.event.envelope import Event
from eventhub.eventlog.streams import Matching as Name
from registrations.filter_source import FilterSource
from registrations.matching.spec import Spec
from registrations.matching.strategies import AUTO, STRATEGIES, StreamStrategy
from registrations.matching.versions import StreamVersion, SuspensionSpan

EVENT = Event("d", "a", {"n": 1})


def version(id: int, **fields: Any) -> StreamVersion:
    found = StreamVersion(id, id * 10, "c", 1, (Spec(),), 0, None)
    return found._replace(**fields)


def match(interest: CallbackMatcher, *sequences: int) -> list[list[int]]:
    return [interest.match(EVENT, sequence).endpoints.get(1, []) for sequence in sequences]


def test_a_suspended_group_matches_nothing_between_the_bounds_of_the_suspension() -> None:
    interest = CallbackMatcher(0)
    interest.take([version(1, group=7), version(2), version(3, group=8)])
    interest.suspend({7: (SuspensionSpan(5, None), SuspensionSpan(1, 2)), 8: ()})
    assert match(interest, 1, 2, 3, 5, 6) == [
        [10, 20, 30], [20, 30], [10, 20, 30], [10, 20, 30], [20, 30],
    ]  # fmt: skip
    interest.suspend({7: (SuspensionSpan(5, 6),)})
    assert match(interest, 6, 7) == [[20, 30], [10, 20, 30]]
    interest.suspend({7: ()})
    assert match(interest, 6) == [[10, 20, 30]]


def test_a_suspended_version_is_not_in_the_matcher() -> None:
    interest = CallbackMatcher(0)
    interest.take([version(1, suspended=True), version(2)])
    assert (len(interest), match(interest, 1)) == (1, [[20]])
    assert not version(1, suspended=True).holds(1)


@pytest.mark.parametrize("strategy", [*STRATEGIES, AUTO])
def test_a_new_strategy_has_the_versions_that_started_and_ended_during_the_rebuild(
    strategy: str,
) -> None:
    interest = CallbackMatcher(0, StreamStrategy("scan" if strategy != "scan" else "access"))
    interest.take([version(id) for id in range(1, 1_201)])
    steps = interest.rebuild(StreamStrategy(strategy))
    next(steps)
    interest.take([version(1, until=5), version(2_000)])
    interest.advance(5)
    next(steps)
    assert interest.matching.strategy != strategy
    interest.take([version(1_100, until=7), version(2_001)])
    interest.advance(7)
    list(steps)
    assert interest.matching.strategy == strategy
    expected = [id * 10 for id in range(2, 1_201) if id != 1_100] + [20_000, 20_010]
    assert match(interest, 8) == [expected]
    assert len(interest) == len(expected)


def test_a_stream_may_have_any_strategy() -> None:
    assert set(get_args(Name)) == {AUTO, *STRATEGIES}


def digest(language: str, source: Any, *streams: int, client: int = 1) -> object:
    filter = FilterSource(language, source)
    found = filter.digest(client, streams or (1,))
    assert filter.prepared().digest(client, streams or (1,)) == found
    return found


def test_equal_filters_have_equal_digests_in_every_language() -> None:
    same = digest("predicate", "(and (= a 1) (or (= b 2) (= c 3)))", 1, 2)
    assert same == digest("predicate", "(or (and (= c 3) (= 1.0 a)) (and (= b 2) (= a 1)))", 2, 1)
    assert digest("pairs", {"attributes": {"a": 1}}) == digest("predicate", "(= a 1)")
    others = [
        digest("predicate", "(and (= a 1) (or (= b 2) (= c 3)))", 1),
        digest("predicate", "(and (= a 1) (or (= b 2) (= c 3)))", 1, 2, client=2),
        digest("predicate", "(= a 1)"),
        digest("predicate", "(= a true)"),
        digest("predicate", '(= a "1")'),
        digest("predicate", "(and (= a 1) (= b 2))"),
        digest("predicate", "(or (= a 1) (= b 2))"),
        digest("pairs", {}),
        digest("predicate", "(and (exists a) (not (exists a)))"),
    ]
    assert len({same, *others}) == 1 + len(others)
