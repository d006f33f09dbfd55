"""What follows from how much room there is: tables of cases."""

import pytest

from eventhub.base import limits
from eventhub.eventlog.retention.disk import (
    DiskSpace,
    ballast_bytes,
    low_bytes,
    spare_bytes,
    wal_bytes,
)
from eventhub.eventlog.retention.quota import (
    PartitionUse,
    StorageBudget,
    droppable,
    next_to_clean,
    wanting,
)

MIB = 1024 * 1024
GIB = 1024 * MIB
# 2 GiB of which something else takes nearly all: 5 MiB may be copied
LOW = StorageBudget(2 * GIB, disk_total=2 * GIB, disk_free=10 * MIB)


@pytest.mark.parametrize(
    ("room", "group_bytes"),
    [
        (StorageBudget(0), limits.PARTITION_BYTES_MAX),
        (StorageBudget(0, quota=64 * MIB), 4 * MIB),
        (StorageBudget(0, quota=32 * MIB), limits.PARTITION_BYTES_MIN),
        (StorageBudget(0, quota=1 * GIB), 64 * MIB),
        (StorageBudget(0, quota=100 * GIB), limits.PARTITION_BYTES_MAX),
        (StorageBudget(0, quota=1 * GIB, disk_total=320 * MIB), 20 * MIB),
    ],
)
def test_groups_are_a_small_part_of_what_there_is(room: StorageBudget, group_bytes: int) -> None:
    assert room.group_bytes == group_bytes
    assert room.segment_bytes == (1 << 62 if group_bytes == GIB else group_bytes // 2)


@pytest.mark.parametrize(
    ("used", "over", "refused"),
    [(79, 0, False), (80, 0, False), (81, 11, False), (91, 21, False), (92, 22, True)],
)
def test_the_quota_acts_before_it_is_reached(used: int, over: int, refused: bool) -> None:
    room = StorageBudget(used * MIB, quota=100 * MIB)
    assert (room.over_quota // MIB, room.refused) == (over, refused)


def test_a_full_disk_cannot_drop_the_newest_part() -> None:
    """Something else may be filling it."""
    room = StorageBudget(60 * MIB, disk_total=400 * MIB, disk_short=200 * MIB, disk_free=0)
    assert room.over_disk == 10 * MIB
    assert StorageBudget(40 * MIB, disk_total=400 * MIB, disk_short=200 * MIB).over_disk == 0
    assert StorageBudget(300 * MIB, disk_total=400 * MIB, disk_short=20 * MIB).over_disk == 20 * MIB


def test_it_is_looked_again_before_the_data_can_have_grown_over_the_quota() -> None:
    for used in range(0, 100, 5):
        room = StorageBudget(used * MIB, quota=100 * MIB)
        grown = room.used + room.look_again_s * limits.RETAIN_GROWTH_BYTES_PER_S
        assert room.refused or grown < 100 * MIB


def group(number: int, live: int, *, size: int = 10, **more: bool) -> PartitionUse:
    flags = {"attached": True, "pending": False, **more}
    return PartitionUse(
        number, flags["attached"], flags["pending"], size * MIB, live * MIB, 10 * MIB, int(live > 0)
    )


@pytest.mark.parametrize(
    ("groups", "room", "chosen"),
    [
        ([group(1, 8), group(2, 6)], StorageBudget(0), None),
        ([group(1, 5), group(2, 1), group(3, 0)], StorageBudget(0), 2),  # 3 is the current one
        (
            [group(1, 5), group(2, 9, pending=True)],
            StorageBudget(0),
            2,
        ),  # what was begun comes first
        ([group(1, 5), group(2, 9, attached=False)], StorageBudget(0), 2),
        (
            [group(1, 7), group(2, 9)],
            StorageBudget(85 * MIB, quota=100 * MIB),
            None,
        ),  # no room for a copy
        ([group(1, 3), group(2, 9)], StorageBudget(85 * MIB, quota=100 * MIB), 1),
        ([group(1, 7), group(2, 9)], StorageBudget(850 * MIB, quota=1000 * MIB), 1),
        ([group(1, 0), group(2, 9)], StorageBudget(99 * MIB, quota=100 * MIB), 1),
        ([group(1, 3), group(2, 9)], StorageBudget(99 * MIB, quota=100 * MIB), 1),
    ],
)
def test_the_group_is_cleaned_that_costs_least(
    groups: list[PartitionUse], room: StorageBudget, chosen: int | None
) -> None:
    found = next_to_clean(groups, 3, room)
    assert (found and found.id) == chosen


@pytest.mark.parametrize(
    ("groups", "room", "wanted"),
    [
        ([group(1, 0), group(2, 9), group(3, 10)], StorageBudget(85 * MIB, quota=100 * MIB), 5),
        # no room to copy what lives of 1: it waits all the same, so that more goes for the rest
        ([group(1, 6), group(2, 10)], LOW._replace(disk_short=14 * MIB), 10),
        # ... but if nothing can be cleaned at all, as much as makes room for the cheapest
        ([group(1, 6), group(2, 7)], LOW._replace(disk_short=7 * MIB), 1),
        ([group(1, 5), group(2, 7)], LOW._replace(disk_short=7 * MIB), 0),
        ([group(1, 6), group(2, 7)], LOW._replace(disk_short=0), 0),
    ],
)
def test_what_waits_to_be_cleaned_is_not_dropped_for_again(
    groups: list[PartitionUse], room: StorageBudget, wanted: int
) -> None:
    assert wanting(groups, 3, room) // MIB == wanted


def test_the_newest_eighth_is_never_dropped() -> None:
    """What was dropped of a group without room to clean it did not count, so the next look dropped
    as much again, down to nothing.
    """
    groups = [group(1, 4), group(2, 10)]  # of 400 MiB the hub may always have 10
    room = StorageBudget(20 * MIB, disk_total=80 * MIB, disk_short=50 * MIB, disk_free=2 * MIB)
    assert droppable(groups, room, 3 * MIB) == 3 * MIB + 1
    assert droppable(groups, room, 50 * MIB) == 4 * MIB
    assert droppable([group(1, 0), group(2, 10)], room, 50 * MIB) == 0
    room = StorageBudget(19 * MIB, quota=20 * MIB)
    assert droppable([group(1, 0), group(2, 3)], room, 50 * MIB) == MIB // 2


@pytest.mark.parametrize("total", [256 * MIB, 300 * MIB, 1 * GIB, 8 * GIB, 250 * GIB, 10_000 * GIB])
def test_the_marks_of_a_disk_leave_room_for_the_servers_log(total: int) -> None:
    assert low_bytes(total) - spare_bytes(total) > wal_bytes(total)
    assert ballast_bytes(total) + wal_bytes(total) + low_bytes(total) < total * 3 // 4
    states = [DiskSpace(total, free).state for free in (0, spare_bytes(total), low_bytes(total))]
    assert states == ["full", "low", "ok"]
    assert DiskSpace(total, low_bytes(total)).narrow, "jobs end before events go"
    assert not DiskSpace(total, total * 3 // 4).narrow
    assert (
        DiskSpace(total, low_bytes(total)).short == 0 < DiskSpace(total, low_bytes(total) - 1).short
    )


def test_events_are_not_dropped_for_what_is_no_event() -> None:
    """An eighth of the quota is theirs, whatever else takes the rest."""
    room = StorageBudget(95 * MIB, quota=100 * MIB, lasting=75 * MIB)
    assert (room.over_quota, room.stuck) == (int(7.5 * MIB), True)
    room = StorageBudget(88 * MIB, quota=100 * MIB, lasting=76 * MIB)
    assert (room.over_quota, room.stuck, room.pressed) == (0, True, False)
    room = StorageBudget(95 * MIB, quota=100 * MIB, lasting=10 * MIB)
    assert (room.over_quota, room.stuck) == (25 * MIB, False)
