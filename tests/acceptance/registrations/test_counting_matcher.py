"""SUN's worked example, its figure and its counters, step by step; the same with the default
strategy.
"""

from collections.abc import Callable

import pytest

from eventhub.event.envelope import Event
from registrations.matching.access import AccessMatcher
from registrations.matching.counting import CountingMatcher
from registrations.matching.matcher import Matcher
from registrations.matching.spec import Spec
from registrations.matching.strategies import STRATEGIES

EV1, EV2, EV3 = 1, 2, 3
NV = (("nv1", "a"), ("nv2", "b"), ("nv3", "c"))
INCOMING = Event("class", "subclass", dict(NV[:2]))
Make = Callable[[], Matcher]

engines = pytest.mark.parametrize("make", [*STRATEGIES.values()], ids=[*STRATEGIES])
indexes = pytest.mark.parametrize("make", [AccessMatcher, CountingMatcher])


def of(*pairs: tuple[str, object]) -> Spec:
    return Spec("class", "subclass", pairs)  # type: ignore[arg-type]


def filled(matcher: Matcher) -> None:
    """Add the registrations of FIG. 6."""
    for id in (EV1, EV2, EV3):
        matcher.add(id, of(*NV[:id]))


def counting() -> CountingMatcher:
    matcher = CountingMatcher()
    filled(matcher)
    return matcher


def key(at: int) -> tuple[object, ...]:
    return (("class", "subclass", None), *NV[at])


@pytest.mark.req("SUN-03", "SUN-04")
@engines
def test_the_subset_rule(make: Make) -> None:
    """SUN-03, SUN-04 with the record of SUN-01."""
    attributes = {"resource group name": "foo", "node": "node", "state": "online"}
    matcher = make()
    registered = [{"state": "online"}, {"state": "online", "node": "node"}]
    others = [{"state": "online", "colour": "red"}, {"state": "offline"}]
    for id, pairs in enumerate([*registered, *others]):
        matcher.add(id, Spec("cluster", "resource group state", tuple(pairs.items())))
    assert sorted(matcher.match(Event("cluster", "resource group state", attributes))) == [0, 1]
    assert matcher.match(Event("cluster", "node state", attributes)) == []


@pytest.mark.req("SUN-05")
@engines
def test_no_pairs_match_every_event_of_the_gate(make: Make) -> None:
    matcher = make()
    matcher.add(9, Spec("cluster", "resource group state"))
    three = {"a": 1, "b": 2, "c": 3}
    assert matcher.match(Event("cluster", "resource group state", three)) == [9]
    assert matcher.match(Event("cluster", "resource group state", {})) == [9]
    assert matcher.match(Event("cluster", "node state", three)) == []


@pytest.mark.req("SUN-06")
@engines
def test_parts_with_separators_are_never_confused(make: Make) -> None:
    matcher = make()
    matcher.add(1, Spec("a", "b:c", (("x", 1),)))
    matcher.add(2, Spec("a:b", "c", (("x", 1),)))
    matcher.add(3, Spec("a", "b", (("c:x", 1),)))
    matcher.add(4, Spec("a", "b:c", (("x=1", ""),)))
    matcher.add(5, Spec("a", "b:c", (("x", "1"),)))
    assert matcher.match(Event("a", "b:c", {"x": 1})) == [1]
    assert matcher.match(Event("a:b", "c", {"x": 1})) == [2]


@pytest.mark.req("SUN-07", "SUN-08")
def test_the_dump_equals_the_figure() -> None:
    matcher = counting()
    assert matcher.dump() == [
        (key(0), [EV1, EV2, EV3]),
        (key(1), [EV2, EV3]),
        (key(2), [EV3]),
    ]
    assert matcher.totals() == {EV1: 1, EV2: 2, EV3: 3}


@pytest.mark.req("SUN-08")
@engines
def test_a_pair_given_twice_counts_once(make: Make) -> None:
    matcher = make()
    matcher.add(EV1, of(NV[0], NV[0]))
    assert matcher.match(Event("class", "subclass", dict(NV[:1]))) == [EV1]


@pytest.mark.req("SUN-08")
def test_the_total_of_a_pair_given_twice_is_one() -> None:
    matcher = CountingMatcher()
    matcher.add(EV1, of(NV[0], NV[0]))
    assert matcher.totals() == {EV1: 1}


@pytest.mark.req("SUN-09")
def test_a_removed_registration_leaves_no_entry() -> None:
    matcher = counting()
    before = matcher.dump()
    access = AccessMatcher()
    filled(access)
    size = access.size()
    for client in (matcher, access):
        for id in range(10, 40):
            client.add(id, of(*NV[: id % 4], ("more.inside", id)))
        for id in range(10, 40):
            client.remove(id)
    assert matcher.dump() == before
    assert access.size() == size


@pytest.mark.req("SUN-10")
def test_an_index_built_at_once_equals_an_incremental_one() -> None:
    grown = CountingMatcher()
    for id in (EV3, 50, EV1):
        grown.add(id, of(*NV[: id % 10]))
    grown.remove(50)
    grown.add(EV2, of(NV[0]))
    grown.add(EV2, of(NV[1], NV[0]))
    assert grown.dump() == counting().dump()
    assert grown.totals() == counting().totals()


@pytest.mark.req("SUN-11")
@indexes
def test_a_registration_is_added_in_place(make: Make) -> None:
    matcher = make()
    filled(matcher)
    assert EV1 in matcher.match(INCOMING)
    rebuilds = matcher.counters.rebuilds
    matcher.add(4, of(NV[1]))
    assert sorted(matcher.match(INCOMING)) == [EV1, EV2, 4]
    assert matcher.counters.rebuilds == rebuilds == 0


@pytest.mark.req("SUN-12", "SUN-13")
def test_the_worked_example() -> None:
    """Two lookups, five increments, ev1 then ev2 due, ev3 not."""
    matcher = counting()
    trace = matcher.trace(INCOMING)
    assert (trace.lookups, trace.increments) == (2, 5)
    assert trace.due == [EV1, EV2]
    first, second = trace.steps
    assert (first.path, first.counters, first.due) == ("nv1", {1: 1, 2: 1, 3: 1}, (EV1,))
    assert (second.path, second.counters, second.due) == ("nv2", {2: 2, 3: 2}, (EV1, EV2))
    assert matcher.residue() == {}
    assert matcher.match(INCOMING) == [EV1, EV2]


@pytest.mark.req("SUN-14")
@engines
def test_no_counter_is_left_after_an_event(make: Make) -> None:
    matcher = make()
    filled(matcher)
    assert matcher.match(Event("class", "subclass", dict(NV[:1]))) == [EV1]
    assert matcher.match(Event("class", "subclass", dict(NV[1:2]))) == []
    assert sorted(matcher.match(INCOMING)) == sorted(matcher.match(INCOMING)) == [EV1, EV2]


@pytest.mark.req("SUN-16")
@indexes
@pytest.mark.parametrize("unrelated", [1_000, 100_000])
def test_work_does_not_grow_with_unrelated_registrations(make: Make, unrelated: int) -> None:
    matcher = make()
    filled(matcher)
    matcher.match(INCOMING)
    touched = matcher.counters.touched
    for id in range(unrelated):
        matcher.add(10 + id, of(("nv1", id), ("other", id % 50)))
    before = matcher.counters.touched
    lookups = matcher.counters.lookups
    assert sorted(matcher.match(INCOMING)) == [EV1, EV2]
    assert matcher.counters.touched - before == touched
    assert matcher.counters.lookups - lookups == 2
    if make is CountingMatcher:
        assert touched == 5
