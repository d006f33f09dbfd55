"""How much room the hub's data may take, and what follows from how much it takes. Plain module.

The quota of the whole hub acts before it is reached: above one mark the oldest segments go, above a
higher one emits are refused, so that the disk stays below the quota itself. A disk with little free
space acts in the same way.
"""

from typing import NamedTuple

from eventhub.base import limits

MIB = 1024 * 1024


class StorageUse(NamedTuple):
    """Bytes on the disk by what they are, with all indexes."""

    events: int = 0
    deliveries: int = 0
    keyed_state: int = 0
    tokens: int = 0

    @property
    def lasting(self) -> int:
        """What no dropping of events gives back."""
        return self.keyed_state + self.tokens


class StorageBudget(NamedTuple):
    """What there is, in bytes; None: no quota, or nobody watches the disk."""

    used: int  # of the hub's tables, indexes and all
    quota: int | None = None
    disk_total: int | None = None
    disk_short: int = 0  # so much should be freed on the disk
    disk_free: int | None = None
    lasting: int = 0  # of `used`: what no dropping of events gives back

    @property
    def capacity(self) -> int | None:
        """What all groups together may come to."""
        known = [bound for bound in (self.quota, self.disk_total) if bound]
        return min(known, default=None)

    @property
    def group_bytes(self) -> int:
        """A group is closed when it is so large."""
        if self.capacity is None:
            return limits.PARTITION_BYTES_MAX
        share = self.capacity // limits.PARTITIONS_PER_CAPACITY
        return min(max(share, limits.PARTITION_BYTES_MIN), limits.PARTITION_BYTES_MAX)

    @property
    def segment_bytes(self) -> int:
        """An open segment that is so large is sealed, whatever its stream's policy says: half a
        group, when groups are small; else there is no such bound.
        """
        return self.group_bytes // 2 if self.group_bytes < limits.PARTITION_BYTES_MAX else 1 << 62

    @property
    def over_mark(self) -> bool:
        """True if something has to go."""
        return bool(self.quota) and self.used > (self.quota or 0) * limits.QUOTA_SHARE_ACT

    @property
    def over_quota(self) -> int:
        """So many bytes of events are too many; 0 below the mark. What events may always hold is
        not taken from them for what is no event.
        """
        if not self.quota or not self.over_mark:
            return 0
        over = self.used - int(self.quota * limits.QUOTA_SHARE_GOAL)
        return max(min(over, self.used - self.lasting - _floor(self.quota)), 0)

    @property
    def stuck(self) -> bool:
        """True if dropping cannot bring the data below the mark where it acts."""
        least = self.lasting + _floor(self.quota)
        return self.over_mark and least > (self.quota or 0) * limits.QUOTA_SHARE_ACT

    @property
    def over_disk(self) -> int:
        """So many bytes are too many for the disk, down to what it may always hold: something else
        may be filling it.
        """
        return max(min(self.disk_short, self.used - _floor(self.disk_total)), 0)

    @property
    def floor(self) -> int:
        """So many bytes events may always hold, of the quota or of the disk, whichever presses."""
        return _floor(self.quota if self.over_quota >= self.over_disk else self.disk_total)

    @property
    def pressed(self) -> bool:
        return bool(self.over_quota or self.over_disk)

    @property
    def refused(self) -> bool:
        """True when emits must wait until something is dropped."""
        return bool(self.quota) and self.used >= (self.quota or 0) * limits.QUOTA_SHARE_REFUSE

    @property
    def unmeasured_bytes(self) -> int:
        """So much may one process store before all is measured anew."""
        if not self.quota:
            return 1 << 62
        return int(max(self.quota - self.used, 0) * limits.QUOTA_SHARE_UNMEASURED)

    @property
    def spare(self) -> int:
        """What cleaning may copy before it frees something."""
        bounds = [1 << 62]
        if self.quota:
            least = int(self.quota * limits.QUOTA_SHARE_CLEAN_MIN)
            bounds.append(max(int(self.quota * limits.QUOTA_SHARE_CLEAN) - self.used, least))
        if self.disk_free is not None:
            bounds.append(self.disk_free // 2)
        return max(min(bounds), 0)

    @property
    def look_again_s(self) -> float:
        """So soon, that the data cannot have grown over the quota meanwhile."""
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
    """A partition with what is partitioned like it."""

    id: int
    attached: bool
    pending: bool  # its detachment was interrupted
    size: int  # bytes on the disk
    live: int  # stored bytes of segments that are still read from it
    stored: int  # stored bytes of all that was written to it
    unempty: int  # live segments that may hold events

    @property
    def live_share(self) -> float:
        if not self.unempty:
            return 0.0
        return self.live / max(self.stored, self.live, 1)

    @property
    def reclaimable(self) -> int:
        """About how many bytes on the disk cleaning it frees."""
        return int(self.size * (1 - self.live_share))

    @property
    def copied(self) -> int:
        """About how many bytes on the disk cleaning it takes meanwhile."""
        return self.size - self.reclaimable


def worth_cleaning(group: PartitionUse, room: StorageBudget) -> bool:
    """True if what must be copied is little against what it frees, and there is room for it."""
    return is_hollow(group, room) and group.copied <= room.spare


def is_hollow(group: PartitionUse, room: StorageBudget) -> bool:
    """True if what must be copied is little against what it frees."""
    share_max = limits.CLEAN_LIVE_SHARE_PRESSED_MAX if room.pressed else limits.CLEAN_LIVE_SHARE_MAX
    return group.live_share <= share_max


def is_left(live: int, stored: int, room: StorageBudget) -> bool:
    """True if the current group is left for the next one before it is full, so that it can be
    cleaned: space is short, and it is mostly dropped.
    """
    large = stored >= limits.PARTITION_BYTES_MIN
    return room.pressed and large and live / stored <= limits.CLEAN_LIVE_SHARE_MAX


def wanting(groups: list[PartitionUse], current: int, room: StorageBudget) -> int:
    """So many bytes on the disk are to be dropped beside what is dropped already and waits for its
    partition to be cleaned, also while there is no room for that. If that holds up every cleaning,
    it is what the cheapest one lacks.
    """
    waiting = [
        group
        for group in groups
        if (group.id < current and is_hollow(group, room))
        or (group.id == current and is_left(group.live, group.stored, room))
    ]
    over = max(room.over_quota, room.over_disk)
    wanted = over - sum(group.reclaimable for group in waiting)
    if wanted > 0 or not over or any(group.copied <= room.spare for group in waiting):
        return max(wanted, 0)
    return min((group.copied - room.spare for group in waiting), default=0)


def stored_share(groups: list[PartitionUse]) -> float:
    """Stored bytes per byte on the disk."""
    size = sum(group.size for group in groups)
    return min(sum(group.stored for group in groups) / size, 1.0) if size else 1.0


def droppable(groups: list[PartitionUse], room: StorageBudget, wanted: int) -> int:
    """So many stored bytes are to go, that as many come free as are wanted. What events may always
    hold stays, whatever waits for its partition to go.
    """
    share = stored_share(groups)
    spared = sum(group.live for group in groups) - int(room.floor * share)
    return max(min(int(wanted * share) + 1, spared), 0)


def next_to_clean(
    groups: list[PartitionUse], current: int, room: StorageBudget
) -> PartitionUse | None:
    """What was begun first; then the group that costs least for what it frees; None if all are
    worth keeping.
    """
    old = [group for group in groups if group.id < current]
    begun = [group for group in old if group.pending or not group.attached]
    if begun:
        return begun[0]
    worth = [group for group in old if worth_cleaning(group, room)]
    return min(worth, key=lambda group: (group.live_share, group.id), default=None)
