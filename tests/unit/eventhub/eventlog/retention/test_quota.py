"""The decisions that follow from the storage budget, as tables of cases."""

import pytest

from eventhub.base import limits
from eventhub.eventlog.retention.disk import (
    DiskSpace,
    ballast_bytes,
    low_bytes,
    spare_bytes,
    wal_bytes,
)
from eventhub.eventlog.retention.quota import PartitionUse, bytes_to_drop, droppable, next_to_clean
from eventhub.eventlog.retention.quota import StorageBudget as Budget

MIB = 1024 * 1024
GIB = 1024 * MIB
# 2 GiB of which something else takes nearly all: 5 MiB may be copied
LOW = Budget(2 * GIB, disk_total=2 * GIB, disk_free=10 * MIB)


@pytest.mark.parametrize(
    ("budget", "partition_bytes"),
    [
        (Budget(0), limits.PARTITION_BYTES_MAX),
        (Budget(0, quota=64 * MIB), 4 * MIB),
        (Budget(0, quota=32 * MIB), limits.PARTITION_BYTES_MIN),
        (Budget(0, quota=1 * GIB), 64 * MIB),
        (Budget(0, quota=100 * GIB), limits.PARTITION_BYTES_MAX),
        (Budget(0, quota=1 * GIB, disk_total=320 * MIB), 20 * MIB),
    ],
)
def test_a_partition_is_a_small_part_of_the_capacity(budget: Budget, partition_bytes: int) -> None:
    assert budget.partition_bytes == partition_bytes
    assert budget.segment_bytes == (1 << 62 if partition_bytes == GIB else partition_bytes // 2)


@pytest.mark.parametrize(
    ("used", "over", "refused"),
    [(79, 0, False), (80, 0, False), (81, 11, False), (91, 21, False), (92, 22, True)],
)
def test_segments_are_dropped_before_the_quota_is_reached(
    used: int, over: int, refused: bool
) -> None:
    budget = Budget(used * MIB, quota=100 * MIB)
    assert (budget.over_quota // MIB, budget.refused) == (over, refused)


def test_a_full_disk_never_drops_the_newest_events() -> None:
    """Something else may be filling the disk."""
    budget = Budget(60 * MIB, disk_total=400 * MIB, disk_bytes_to_free=200 * MIB, disk_free=0)
    assert budget.over_disk == 10 * MIB
    assert Budget(40 * MIB, disk_total=400 * MIB, disk_bytes_to_free=200 * MIB).over_disk == 0
    assert (
        Budget(300 * MIB, disk_total=400 * MIB, disk_bytes_to_free=20 * MIB).over_disk == 20 * MIB
    )


def test_the_next_check_comes_before_the_data_can_exceed_the_quota() -> None:
    for used in range(0, 100, 5):
        budget = Budget(used * MIB, quota=100 * MIB)
        grown = budget.used + budget.check_interval_s * limits.RETAIN_GROWTH_BYTES_PER_S
        assert budget.refused or grown < 100 * MIB


def part(number: int, live: int, *, size: int = 10, **more: bool) -> PartitionUse:
    flags = {"attached": True, "pending": False, **more}
    return PartitionUse(
        number, flags["attached"], flags["pending"], size * MIB, live * MIB, 10 * MIB, int(live > 0)
    )


@pytest.mark.parametrize(
    ("partitions", "budget", "chosen"),
    [
        ([part(1, 8), part(2, 6)], Budget(0), None),
        ([part(1, 5), part(2, 1), part(3, 0)], Budget(0), 2),  # 3 is the current one
        ([part(1, 5), part(2, 9, pending=True)], Budget(0), 2),  # a started removal comes first
        ([part(1, 5), part(2, 9, attached=False)], Budget(0), 2),
        ([part(1, 7), part(2, 9)], Budget(85 * MIB, quota=100 * MIB), None),  # no space for a copy
        ([part(1, 3), part(2, 9)], Budget(85 * MIB, quota=100 * MIB), 1),
        ([part(1, 7), part(2, 9)], Budget(850 * MIB, quota=1000 * MIB), 1),
        ([part(1, 0), part(2, 9)], Budget(99 * MIB, quota=100 * MIB), 1),
        ([part(1, 3), part(2, 9)], Budget(99 * MIB, quota=100 * MIB), 1),
    ],
)
def test_the_cheapest_partition_is_cleaned(
    partitions: list[PartitionUse], budget: Budget, chosen: int | None
) -> None:
    found = next_to_clean(partitions, 3, budget)
    assert (found and found.id) == chosen


@pytest.mark.parametrize(
    ("partitions", "budget", "expected"),
    [
        ([part(1, 0), part(2, 9), part(3, 10)], Budget(85 * MIB, quota=100 * MIB), 5),
        # no space to copy the live part of 1: it still counts as waiting, so more is dropped
        ([part(1, 6), part(2, 10)], LOW._replace(disk_bytes_to_free=14 * MIB), 10),
        # ... but if nothing can be cleaned, as much as the cheapest lacks
        ([part(1, 6), part(2, 7)], LOW._replace(disk_bytes_to_free=7 * MIB), 1),
        ([part(1, 5), part(2, 7)], LOW._replace(disk_bytes_to_free=7 * MIB), 0),
        ([part(1, 6), part(2, 7)], LOW._replace(disk_bytes_to_free=0), 0),
    ],
)
def test_partitions_waiting_for_cleaning_count_as_dropped(
    partitions: list[PartitionUse], budget: Budget, expected: int
) -> None:
    assert bytes_to_drop(partitions, 3, budget) // MIB == expected


def test_the_newest_eighth_is_never_dropped() -> None:
    """Segments dropped from a partition that could not be cleaned did not count, so each check
    dropped as much again, down to nothing.
    """
    partitions = [part(1, 4), part(2, 10)]  # of a disk of 80 MiB events keep 10
    budget = Budget(20 * MIB, disk_total=80 * MIB, disk_bytes_to_free=50 * MIB, disk_free=2 * MIB)
    assert droppable(partitions, budget, 3 * MIB) == 3 * MIB + 1
    assert droppable(partitions, budget, 50 * MIB) == 4 * MIB
    assert droppable([part(1, 0), part(2, 10)], budget, 50 * MIB) == 0
    budget = Budget(19 * MIB, quota=20 * MIB)
    assert droppable([part(1, 0), part(2, 3)], budget, 50 * MIB) == MIB // 2


@pytest.mark.parametrize("total", [256 * MIB, 300 * MIB, 1 * GIB, 8 * GIB, 250 * GIB, 10_000 * GIB])
def test_the_thresholds_of_a_disk_leave_space_for_the_wal(total: int) -> None:
    assert low_bytes(total) - spare_bytes(total) > wal_bytes(total)
    assert ballast_bytes(total) + wal_bytes(total) + low_bytes(total) < total * 3 // 4
    states = [DiskSpace(total, free).state for free in (0, spare_bytes(total), low_bytes(total))]
    assert states == ["full", "low", "ok"]
    assert DiskSpace(total, low_bytes(total)).is_nearly_low, "jobs end before events are dropped"
    assert not DiskSpace(total, total * 3 // 4).is_nearly_low
    assert (
        DiskSpace(total, low_bytes(total)).bytes_to_free
        == 0
        < DiskSpace(total, low_bytes(total) - 1).bytes_to_free
    )


def test_events_keep_a_minimum_if_other_data_fills_the_quota() -> None:
    """An eighth of the quota is reserved for events."""
    budget = Budget(95 * MIB, quota=100 * MIB, lasting=75 * MIB)
    assert (budget.over_quota, budget.cannot_free_space) == (int(7.5 * MIB), True)
    budget = Budget(88 * MIB, quota=100 * MIB, lasting=76 * MIB)
    assert (budget.over_quota, budget.cannot_free_space, budget.must_free_space) == (0, True, False)
    budget = Budget(95 * MIB, quota=100 * MIB, lasting=10 * MIB)
    assert (budget.over_quota, budget.cannot_free_space) == (25 * MIB, False)
