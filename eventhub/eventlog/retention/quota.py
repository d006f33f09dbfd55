"""Storage budget of the hub: the quota, the disk, and the decisions that follow from their use.
Plain module.

The quota of the whole hub takes effect before it is reached: above one threshold the oldest
segments are dropped, above a higher one emits are refused, so that the disk stays below the quota.
A disk with little free space has the same effect.
"""

from typing import NamedTuple

from eventhub.base import limits

MIB = 1024 * 1024


class StorageBytes(NamedTuple):
    """Bytes on the disk by kind of data, with all indexes."""

    events: int = 0
    deliveries: int = 0
    keyed_state: int = 0
    tokens: int = 0

    @property
    def lasting(self) -> int:
        """The bytes that dropping events does not free."""
        return self.keyed_state + self.tokens


class StorageBudget(NamedTuple):
    """The bytes used and available; None: no quota, or no disk is watched."""

    used: int  # by the hub's tables with their indexes
    quota: int | None = None
    disk_total: int | None = None
    disk_bytes_to_free: int = 0  # to be freed on the disk
    disk_free: int | None = None
    lasting: int = 0  # the part of `used` that dropping events does not free

    @property
    def capacity(self) -> int | None:
        """The most that all partitions together may use."""
        known = [bound for bound in (self.quota, self.disk_total) if bound]
        return min(known, default=None)

    @property
    def partition_bytes(self) -> int:
        """The size at which a partition is closed."""
        if self.capacity is None:
            return limits.PARTITION_BYTES_MAX
        share = self.capacity // limits.PARTITIONS_PER_CAPACITY
        return min(max(share, limits.PARTITION_BYTES_MIN), limits.PARTITION_BYTES_MAX)

    @property
    def segment_bytes(self) -> int:
        """The size at which an open segment is sealed regardless of its stream's policy: half a
        partition if partitions are small, else unlimited.
        """
        return (
            self.partition_bytes // 2
            if self.partition_bytes < limits.PARTITION_BYTES_MAX
            else 1 << 62
        )

    @property
    def is_over_threshold(self) -> bool:
        """Whether something must be dropped."""
        return bool(self.quota) and self.used > (self.quota or 0) * limits.QUOTA_SHARE_ACT

    @property
    def over_quota(self) -> int:
        """The bytes of events to drop for the quota; 0 below the threshold. Events always keep a
        minimum, even if other data fills the quota.
        """
        if not self.quota or not self.is_over_threshold:
            return 0
        over = self.used - int(self.quota * limits.QUOTA_SHARE_GOAL)
        return max(min(over, self.used - self.lasting - _floor(self.quota)), 0)

    @property
    def cannot_free_space(self) -> bool:
        """Whether dropping cannot bring the data below the threshold."""
        least = self.lasting + _floor(self.quota)
        return self.is_over_threshold and least > (self.quota or 0) * limits.QUOTA_SHARE_ACT

    @property
    def over_disk(self) -> int:
        """The bytes of events to drop for the disk. Events always keep a minimum, because something
        else may be filling the disk.
        """
        return max(min(self.disk_bytes_to_free, self.used - _floor(self.disk_total)), 0)

    @property
    def floor(self) -> int:
        """The bytes that events always keep, of the quota or of the disk, whichever is short."""
        return _floor(self.quota if self.over_quota >= self.over_disk else self.disk_total)

    @property
    def must_free_space(self) -> bool:
        """Whether space is short."""
        return bool(self.over_quota or self.over_disk)

    @property
    def refused(self) -> bool:
        """Whether emits are refused until segments are dropped."""
        return bool(self.quota) and self.used >= (self.quota or 0) * limits.QUOTA_SHARE_REFUSE

    @property
    def unmeasured_bytes(self) -> int:
        """The bytes that one process may store before the next measurement."""
        if not self.quota:
            return 1 << 62
        return int(max(self.quota - self.used, 0) * limits.QUOTA_SHARE_UNMEASURED)

    @property
    def spare(self) -> int:
        """The bytes that cleaning may copy before it frees any."""
        bounds = [1 << 62]
        if self.quota:
            least = int(self.quota * limits.QUOTA_SHARE_CLEAN_MIN)
            bounds.append(max(int(self.quota * limits.QUOTA_SHARE_CLEAN) - self.used, least))
        if self.disk_free is not None:
            bounds.append(self.disk_free // 2)
        return max(min(bounds), 0)

    @property
    def check_interval_s(self) -> float:
        """The time until the next check, short enough that the data cannot exceed the quota."""
        if self.over_disk:
            return limits.RETAIN_BUSY_INTERVAL_S
        if not self.quota:
            return limits.RETAIN_CHECK_INTERVAL_S
        left = self.quota * limits.QUOTA_SHARE_REFUSE - self.used
        soon_s = left / limits.RETAIN_GROWTH_BYTES_PER_S
        return min(max(soon_s, limits.RETAIN_CHECK_INTERVAL_S_MIN), limits.RETAIN_CHECK_INTERVAL_S)


def _floor(capacity: int | None) -> int:
    return int((capacity or 0) * limits.DISK_FLOOR_SHARE)


class PartitionUse(NamedTuple):
    """The use of a partition, with the tables that are partitioned alike."""

    id: int
    attached: bool
    pending: bool  # its detachment was interrupted
    size: int  # bytes on the disk
    live: int  # stored bytes of live segments
    stored: int  # stored bytes of all events that were written to it
    nonempty: int  # live segments that may hold events

    @property
    def live_share(self) -> float:
        if not self.nonempty:
            return 0.0
        return self.live / max(self.stored, self.live, 1)

    @property
    def reclaimable(self) -> int:
        """The approximate bytes on the disk that cleaning frees."""
        return int(self.size * (1 - self.live_share))

    @property
    def copied(self) -> int:
        """The approximate bytes on the disk that cleaning needs meanwhile."""
        return self.size - self.reclaimable


def is_worth_cleaning(partition: PartitionUse, budget: StorageBudget) -> bool:
    """Return whether cleaning copies little for what it frees, and there is space for the copy."""
    return is_mostly_dropped(partition, budget) and partition.copied <= budget.spare


def is_mostly_dropped(partition: PartitionUse, budget: StorageBudget) -> bool:
    """Return whether cleaning copies little for what it frees."""
    share_max = (
        limits.CLEAN_LIVE_SHARE_PRESSED_MAX
        if budget.must_free_space
        else limits.CLEAN_LIVE_SHARE_MAX
    )
    return partition.live_share <= share_max


def is_cut_short(live: int, stored: int, budget: StorageBudget) -> bool:
    """Return whether to advance to the next partition before the current one is full, so that it
    can be cleaned: space is short, and the partition is mostly dropped.
    """
    large = stored >= limits.PARTITION_BYTES_MIN
    return budget.must_free_space and large and live / stored <= limits.CLEAN_LIVE_SHARE_MAX


def bytes_to_drop(partitions: list[PartitionUse], current: int, budget: StorageBudget) -> int:
    """Return the bytes on the disk to be freed by dropping more segments. Partitions that wait for
    cleaning count as freed, also while there is no space for their copies. If that blocks all
    cleaning, return what the cheapest one lacks.
    """
    waiting = [
        partition
        for partition in partitions
        if (partition.id < current and is_mostly_dropped(partition, budget))
        or (partition.id == current and is_cut_short(partition.live, partition.stored, budget))
    ]
    over = max(budget.over_quota, budget.over_disk)
    needed = over - sum(partition.reclaimable for partition in waiting)
    if needed > 0 or not over or any(partition.copied <= budget.spare for partition in waiting):
        return max(needed, 0)
    return min((partition.copied - budget.spare for partition in waiting), default=0)


def stored_share(partitions: list[PartitionUse]) -> float:
    """Return the stored bytes per byte on the disk."""
    size = sum(partition.size for partition in partitions)
    return min(sum(partition.stored for partition in partitions) / size, 1.0) if size else 1.0


def droppable(partitions: list[PartitionUse], budget: StorageBudget, needed: int) -> int:
    """Return the stored bytes to drop so that the needed bytes are freed. The minimum of events is
    never dropped.
    """
    share = stored_share(partitions)
    spared = sum(partition.live for partition in partitions) - int(budget.floor * share)
    return max(min(int(needed * share) + 1, spared), 0)


def next_to_clean(
    partitions: list[PartitionUse], current: int, budget: StorageBudget
) -> PartitionUse | None:
    """Return the partition to clean: one whose removal has started, else the one with the smallest
    live share; None if all are worth keeping.
    """
    old = [partition for partition in partitions if partition.id < current]
    started = [partition for partition in old if partition.pending or not partition.attached]
    if started:
        return started[0]
    worth = [partition for partition in old if is_worth_cleaning(partition, budget)]
    return min(worth, key=lambda partition: (partition.live_share, partition.id), default=None)
