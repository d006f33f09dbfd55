"""Bounds of the backlog and what is dropped: tables of cases."""

import pytest

from delivery.forward.bounds import (
    BacklogBounds,
    BacklogQuota,
    BacklogSettings,
    EndpointBacklog,
    bounds_of,
    cuts,
    level_down,
)

MIB = 1024 * 1024
NARROW = BacklogBounds(
    endpoint_events=100,
    endpoint_bytes=1_000,
    client_events=200,
    client_bytes=1_500,
    hub_bytes=2_000,
    age_s=60,
)


@pytest.mark.parametrize(
    ("sizes", "limit", "retained"),
    [
        ([5, 5], 10, [5, 5]),  # within the limit
        ([5, 6], 10, [4, 4]),  # beyond it: down to 9
        ([1, 2, 50], 30, [1, 2, 24]),  # the largest is cut first
        ([1, 40, 50], 30, [1, 13, 13]),
        ([11], 10, [9]),
        ([7, 7, 7], 0, [0, 0, 0]),
        ([], 10, []),
    ],
)
def test_an_excess_is_cut_to_one_level(sizes: list[int], limit: int, retained: list[int]) -> None:
    assert list(level_down(dict(enumerate(sizes)), limit).values()) == retained


@pytest.mark.parametrize(
    ("backlogs", "dropped"),
    [
        ([EndpointBacklog(1, 1, 100, 1_000)], []),
        ([EndpointBacklog(1, 1, 101, 500)], [(1, 11, 0, "endpoint")]),
        ([EndpointBacklog(1, 1, 50, 1_100)], [(1, 0, 200, "endpoint")]),
        ([EndpointBacklog(1, 1, 50, 500, overdue=3)], [(1, 0, 0, "age")]),
        # of one client two, and one of another that keeps everything
        (
            [EndpointBacklog(1, 1, 95, 10), EndpointBacklog(2, 1, 96, 10),
             EndpointBacklog(3, 1, 20, 10), EndpointBacklog(4, 2, 99, 10)],
            [(1, 15, 0, "client"), (2, 16, 0, "client")],
        ),
        # the hub's bound: the client with the most is cut
        (
            [EndpointBacklog(1, 1, 1, 700), EndpointBacklog(2, 1, 1, 700),
             EndpointBacklog(3, 2, 1, 700), EndpointBacklog(4, 3, 1, 10)],
            [(1, 0, 155, "hub"), (2, 0, 155, "hub")],
        ),
    ],
)  # fmt: skip
def test_the_oldest_of_the_largest_are_dropped(
    backlogs: list[EndpointBacklog], dropped: list[tuple[int, int, int, str]]
) -> None:
    cut_down = [(cut.backlog.endpoint_id, *cut[1:]) for cut in cuts(backlogs, NARROW)]
    assert cut_down == dropped


def test_small_hubs_bound_more_than_their_settings() -> None:
    settings = BacklogSettings(events=10, bytes=512 * MIB, age_s=60)
    assert bounds_of(settings, None) == BacklogBounds(10, 512 * MIB, 40, 2048 * MIB, None, 60)
    small = bounds_of(settings, 64 * MIB)
    assert small == BacklogBounds(10, 4 * MIB, 40, 8 * MIB, 16 * MIB, 60)
    assert bounds_of(settings, 1 << 50).endpoint_bytes == 512 * MIB


@pytest.mark.parametrize(
    ("clients", "zones", "dropped"),
    [
        ({1: BacklogQuota(events=100)}, {}, [(1, 15, 0, "client"), (2, 15, 0, "client")]),
        ({1: BacklogQuota(events=1_000)}, {}, []),  # the hub's bound is lower, and not exceeded
        ({1: BacklogQuota(bytes=10)}, {}, [(1, 0, 6, "client"), (2, 0, 6, "client")]),
        ({2: BacklogQuota(events=59)}, {}, [(3, 7, 0, "client")]),
        ({}, {7: BacklogQuota(events=150)}, [(1, 15, 0, "zone"), (2, 15, 0, "zone"),
                                             (3, 15, 0, "zone")]),
        # a zone counts what the bounds of its clients leave
        ({1: BacklogQuota(events=20)}, {7: BacklogQuota(events=78)},
         [(1, 51, 0, "client"), (2, 51, 0, "client")]),
        ({}, {8: BacklogQuota(events=1, bytes=10)}, [(4, 60, 2, "zone")]),
        ({}, {9: BacklogQuota(events=1)}, []),
    ],
)  # fmt: skip
def test_quotas_of_clients_and_zones(
    clients: dict[int, BacklogQuota],
    zones: dict[int, BacklogQuota],
    dropped: list[tuple[int, int, int, str]],
) -> None:
    backlogs = [
        *(EndpointBacklog(at, 1, 60, 10, zone_id=7) for at in (1, 2)),
        EndpointBacklog(3, 2, 60, 10, zone_id=7),
        EndpointBacklog(4, 3, 60, 11, zone_id=8),
    ]
    bounds = NARROW._replace(client_quotas=clients, zone_quotas=zones)
    found = [
        (cut.backlog.endpoint_id, cut.events, cut.bytes, cut.bound)
        for cut in cuts(backlogs, bounds)
    ]
    assert found == dropped
