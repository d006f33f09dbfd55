"""The order in which endpoints are granted slots."""

from random import Random

from delivery.callbacks.claims import CallbackEndpoint, ScanResult
from delivery.callbacks.rotation import Rotation
from eventhub.base import limits

NOTHING: frozenset[int] = frozenset()


def endpoints(ids: range, client: int = 1) -> dict[int, CallbackEndpoint]:
    return {
        each: CallbackEndpoint(each, "http://x/", 0, "v1", client, "z", "native", None, None)
        for each in ids
    }


def test_each_endpoint_is_granted_across_pages() -> None:
    rotation = Rotation(Random(1))
    pages = [(0, ScanResult(endpoints(range(1, 11)), NOTHING, {}, 10)),
             (10, ScanResult(endpoints(range(11, 14)), NOTHING, {}, None))]  # fmt: skip
    served = []
    rotation.due(*pages[0])
    rotation.grant(rotation.due(*pages[0]), [])
    for round in range(26):
        due = rotation.due(*pages[(round + 1) % 2])
        one = next(iter(rotation.order(due.values())))
        rotation.grant(due, [one])
        served.append(one)
    assert max(served.count(each) for each in range(1, 14)) <= 3
    assert set(served) == set(range(1, 14))


def test_endpoints_no_longer_due_do_not_wait() -> None:
    rotation = Rotation(Random(1))
    rotation.grant(rotation.due(0, ScanResult(endpoints(range(1, 11)), NOTHING, {}, 10)), [])
    assert set(rotation.due(10, ScanResult({}, NOTHING, {}, None))) == set(range(1, 11))
    assert set(rotation.due(0, ScanResult(endpoints(range(3, 5)), NOTHING, {}, 10))) == {3, 4}


def test_endpoints_never_granted_come_first_and_workers_start_differently() -> None:
    one, other = Rotation(Random(1)), Rotation(Random(2))
    some = endpoints(range(1, 100))
    assert list(one.order(some.values()))[:8] != list(other.order(some.values()))[:8]
    first = list(one.order(some.values()))[:60]
    one.grant(some, first)
    assert set(list(one.order(some.values()))[:39]) == set(some) - set(first)


def test_a_client_with_many_endpoints_does_not_delay_another() -> None:
    rotation = Rotation(Random(1))
    many, single = endpoints(range(1, 600)), endpoints(range(600, 601), client=2)
    assert 600 in list(rotation.order([*many.values(), *single.values()]))[:2]


def test_the_memory_is_bounded() -> None:
    rotation = Rotation(Random(1))
    most = limits.CALLBACK_ENDPOINTS_REMEMBERED_MAX
    rotation.grant(endpoints(range(most + 1)), [])
    assert rotation.due(-1, ScanResult({}, NOTHING, {}, None)) == {}
    for first in range(0, most + 10, 100):
        rotation.grant({}, range(first, first + 100))
    assert len(rotation._granted) <= most
