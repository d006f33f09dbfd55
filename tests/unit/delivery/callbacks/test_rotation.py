"""The order in which endpoints are granted slots."""

from random import Random

from delivery.callbacks.claims import Endpoint, Found
from delivery.callbacks.rotation import Turns
from eventhub.base import limits

NOTHING: frozenset[int] = frozenset()


def endpoints(ids: range, client: int = 1) -> dict[int, Endpoint]:
    return {each: Endpoint(each, "http://x/", b"", client, "native") for each in ids}


def test_each_gets_its_turn_across_pages() -> None:
    turns = Turns(Random(1))
    pages = [(0, Found(endpoints(range(1, 11)), NOTHING, {}, 10)),
             (10, Found(endpoints(range(11, 14)), NOTHING, {}, None))]  # fmt: skip
    served = []
    turns.due(*pages[0])
    turns.grant(turns.due(*pages[0]), [])
    for turn in range(26):
        due = turns.due(*pages[(turn + 1) % 2])
        one = next(iter(turns.order(due.values())))
        turns.grant(due, [one])
        served.append(one)
    assert max(served.count(each) for each in range(1, 14)) <= 3
    assert set(served) == set(range(1, 14))


def test_what_is_not_due_any_more_does_not_wait() -> None:
    turns = Turns(Random(1))
    turns.grant(turns.due(0, Found(endpoints(range(1, 11)), NOTHING, {}, 10)), [])
    assert set(turns.due(10, Found({}, NOTHING, {}, None))) == set(range(1, 11))
    assert set(turns.due(0, Found(endpoints(range(3, 5)), NOTHING, {}, 10))) == {3, 4}


def test_the_never_granted_come_first_and_workers_begin_at_different_places() -> None:
    one, other = Turns(Random(1)), Turns(Random(2))
    some = endpoints(range(1, 100))
    assert list(one.order(some.values()))[:8] != list(other.order(some.values()))[:8]
    first = list(one.order(some.values()))[:60]
    one.grant(some, first)
    assert set(list(one.order(some.values()))[:39]) == set(some) - set(first)


def test_a_client_with_many_endpoints_does_not_stand_before_another() -> None:
    turns = Turns(Random(1))
    many, single = endpoints(range(1, 600)), endpoints(range(600, 601), client=2)
    assert 600 in list(turns.order([*many.values(), *single.values()]))[:2]


def test_what_is_remembered_is_bounded() -> None:
    turns = Turns(Random(1))
    most = limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX
    turns.grant(endpoints(range(most + 1)), [])
    assert turns.due(-1, Found({}, NOTHING, {}, None)) == {}
    for first in range(0, most + 10, 100):
        turns.grant({}, range(first, first + 100))
    assert len(turns._granted) <= most
