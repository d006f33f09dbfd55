"""The memory that the partial matches of the pattern groups of one process take: beyond its limit
the client with the most gives way. Plain module.
"""

from collections import defaultdict
from typing import NamedTuple

from eventhub.base import limits


class _GroupSize(NamedTuple):
    client: int
    bytes: int


class GroupMemory:
    """The sizes of groups, as reported last. Concurrency contract: one event loop."""

    def __init__(self) -> None:
        self._sizes: dict[int, _GroupSize] = {}

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self._sizes.values())

    def report(self, group: int, client: int, size: int) -> bool:
        """Record the size of a group; return whether it is to discard half of it: the limit of the
        process is exceeded, and it is the largest group of the client whose groups hold the most.
        """
        self._sizes[group] = _GroupSize(client, size)
        return self.bytes > limits.PATTERN_PROCESS_BYTES_MAX and group == self._largest()

    def forget(self, group: int) -> None:
        """Forget a group that this process does not run any more."""
        self._sizes.pop(group, None)

    def _largest(self) -> int:
        of_clients: defaultdict[int, int] = defaultdict(int)
        for one in self._sizes.values():
            of_clients[one.client] += one.bytes
        return max(
            self._sizes,
            key=lambda group: (
                of_clients[self._sizes[group].client],
                self._sizes[group].client,
                self._sizes[group].bytes,
                group,
            ),
        )
