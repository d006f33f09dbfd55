"""What may wait for endpoints, and what has to go: tables of cases."""

import pytest

from delivery.forward.bounds import Bounds, Waiting, Wanted, bounds_of, cuts, leveled

MIB = 1024 * 1024
NARROW = Bounds(
    endpoint_events=100,
    endpoint_bytes=1_000,
    client_events=200,
    client_bytes=1_500,
    hub_bytes=2_000,
    age_s=60,
)


@pytest.mark.parametrize(
    ("sizes", "most", "kept"),
    [
        ([5, 5], 10, [5, 5]),  # it is no more than may be
        ([5, 6], 10, [4, 4]),  # 9 are left when it was
        ([1, 2, 50], 30, [1, 2, 24]),  # the largest gives first
        ([1, 40, 50], 30, [1, 13, 13]),
        ([11], 10, [9]),
        ([7, 7, 7], 0, [0, 0, 0]),
        ([], 10, []),
    ],
)
def test_what_is_too_much_is_cut_to_one_level(sizes: list[int], most: int, kept: list[int]) -> None:
    assert list(leveled(dict(enumerate(sizes)), most).values()) == kept


@pytest.mark.parametrize(
    ("found", "gone"),
    [
        ([Waiting(1, 1, 100, 1_000)], []),
        ([Waiting(1, 1, 101, 500)], [(1, 11, 0, "endpoint")]),
        ([Waiting(1, 1, 50, 1_100)], [(1, 0, 200, "endpoint")]),
        ([Waiting(1, 1, 50, 500, overdue=3)], [(1, 0, 0, "age")]),
        # two of one client, and one of another that is not concerned
        (
            [Waiting(1, 1, 95, 10), Waiting(2, 1, 96, 10), Waiting(3, 1, 20, 10),
             Waiting(4, 2, 99, 10)],
            [(1, 15, 0, "client"), (2, 16, 0, "client")],
        ),
        # the hub's: of the client that has the most
        (
            [Waiting(1, 1, 1, 700), Waiting(2, 1, 1, 700), Waiting(3, 2, 1, 700),
             Waiting(4, 3, 1, 10)],
            [(1, 0, 155, "hub"), (2, 0, 155, "hub")],
        ),
    ],
)  # fmt: skip
def test_the_oldest_of_the_largest_go(
    found: list[Waiting], gone: list[tuple[int, int, int, str]]
) -> None:
    made = [(cut.waiting.endpoint_id, *cut[1:]) for cut in cuts(found, NARROW)]
    assert made == gone


def test_small_hubs_bound_more_than_their_settings() -> None:
    wanted = Wanted(events=10, bytes=512 * MIB, age_s=60)
    assert bounds_of(wanted, None) == Bounds(10, 512 * MIB, 40, 2048 * MIB, None, 60)
    small = bounds_of(wanted, 64 * MIB)
    assert small == Bounds(10, 4 * MIB, 40, 8 * MIB, 16 * MIB, 60)
    assert bounds_of(wanted, 1 << 50).endpoint_bytes == 512 * MIB
