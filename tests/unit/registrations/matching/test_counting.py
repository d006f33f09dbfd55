"""SUN's worked example and figure with the strategy `counting`, step by step: its trace, its dump
and its totals.
"""

from dataclasses import replace

import pytest

from eventhub.event.envelope import Event
from registrations.matching.counting import CountingMatcher
from registrations.matching.spec import Spec
from registrations.matching.strategies import StreamStrategy

EV1, EV2, EV3 = 1, 2, 3
NV = (("nv1", "a"), ("nv2", "b"), ("nv3", "c"))
INCOMING = Event("class", "subclass", dict(NV[:2]))


def of(*pairs: tuple[str, object]) -> Spec:
    return Spec("class", "subclass", pairs)  # type: ignore[arg-type]


@pytest.fixture
def matcher() -> CountingMatcher:
    """Return a matcher with the registrations of FIG. 6."""
    made = CountingMatcher()
    for id in (EV1, EV2, EV3):
        made.add(id, of(*NV[:id]))
    return made


def key(at: int) -> tuple[object, ...]:
    return (("class", "subclass", None), *NV[at])


def test_the_dump_equals_the_figure(matcher: CountingMatcher) -> None:
    assert matcher.dump() == [
        (key(0), [EV1, EV2, EV3]),
        (key(1), [EV2, EV3]),
        (key(2), [EV3]),
    ]
    assert matcher.totals() == {EV1: 1, EV2: 2, EV3: 3}


def test_the_total_of_a_pair_given_twice_is_one() -> None:
    matcher = CountingMatcher()
    matcher.add(EV1, of(NV[0], NV[0]))
    assert matcher.totals() == {EV1: 1}
    assert matcher.match(Event("class", "subclass", dict(NV[:1]))) == [EV1]


def test_a_removed_registration_leaves_no_entry(matcher: CountingMatcher) -> None:
    before = matcher.dump()
    for id in range(10, 40):
        matcher.add(id, of(*NV[: id % 4], ("more.inside", id)))
    for id in range(10, 40):
        matcher.remove(id)
    assert matcher.dump() == before


def test_an_index_that_was_changed_equals_one_built_at_once(matcher: CountingMatcher) -> None:
    grown = CountingMatcher()
    for id in (EV3, 50, EV1):
        grown.add(id, of(*NV[: id % 10]))
    grown.remove(50)
    grown.add(EV2, of(NV[0]))
    grown.add(EV2, of(NV[1], NV[0]))
    assert grown.dump() == matcher.dump()
    assert grown.totals() == matcher.totals()


def test_the_trace_of_the_worked_example(matcher: CountingMatcher) -> None:
    """Two lookups, five increments, ev1 then ev2 due, ev3 not."""
    trace = matcher.trace(INCOMING)
    assert (trace.lookups, trace.increments) == (2, 5)
    assert trace.due == [EV1, EV2]
    first, second = trace.steps
    assert (first.path, first.counters, first.due) == ("nv1", {1: 1, 2: 1, 3: 1}, (EV1,))
    assert (second.path, second.counters, second.due) == ("nv2", {2: 2, 3: 2}, (EV1, EV2))
    assert matcher.residue() == {}
    assert matcher.match(INCOMING) == [EV1, EV2]


@pytest.mark.slow
@pytest.mark.req("SUN-16")
@pytest.mark.parametrize(("strategy", "touched"), [("counting", 5), ("auto", 2)])
def test_the_work_of_a_forwarders_matcher_is_the_same_with_100_000_unrelated_registrations(
    strategy: str, touched: int
) -> None:
    """The others name the same attribute with other values."""
    matcher = StreamStrategy(strategy).new()
    for id in (EV1, EV2, EV3):
        matcher.add(id, (of(*NV[:id]),))
    loaded = 0
    for unrelated in (1_000, 100_000):
        for id in range(loaded, unrelated):
            matcher.add(10 + id, (of(("nv1", id), ("other", id % 50)),))
        loaded = unrelated
        before = replace(matcher.counters)
        assert sorted(matcher.match(INCOMING)) == [EV1, EV2]
        after = matcher.counters
        assert (after.lookups - before.lookups, after.touched - before.touched) == (2, touched)
    assert len(matcher) == 100_003
