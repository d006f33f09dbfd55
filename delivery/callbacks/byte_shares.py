"""Which of the claimed deliveries are posted, if the events of all of them are too large together.
Plain module.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

from delivery.callbacks.claimed_groups import AnyClaim
from eventhub.base import limits

_Turn = tuple[int, int]  # bytes given so far, and the id: of two with the same, the lower one


def shares_of_bytes(
    claimed: Sequence[AnyClaim],
    clients: Sequence[int],
    sizes: Sequence[Sequence[int]],
    bytes_max: int,
) -> list[int]:
    """Return how many deliveries of each claim are posted, the first ones: those that fit into the
    bytes, and at least one. The next is always of the client with the fewest bytes so far, and of
    its endpoint with the fewest, in the order of its claims. `clients` and `sizes`: of each claim.
    """
    if sum(map(sum, sizes)) <= bytes_max:
        return [*map(len, sizes)]
    counts = [0] * len(claimed)
    waiting: dict[int, dict[int, deque[tuple[int, int]]]] = {}
    for number, (claim, client) in enumerate(zip(claimed, clients, strict=True)):
        queue = waiting.setdefault(client, {}).setdefault(claim.endpoint_id, deque())
        queue.extend((number, size) for size in sizes[number])
    turns: list[_Turn] = [(0, client) for client in waiting]
    turns_of = {client: [(0, each) for each in queues] for client, queues in waiting.items()}
    for heap in (turns, *turns_of.values()):
        heapify(heap)
    while turns and bytes_max > 0:
        taken, client = turns[0]
        own, endpoint = turns_of[client][0]
        queue = waiting[client][endpoint]
        number, size = queue.popleft()
        counts[number] += 1
        size += limits.CALLBACK_EVENT_CACHED_BYTES
        bytes_max -= size
        _return(turns_of[client], (own + size, endpoint) if queue else None)
        _return(turns, (taken + size, client) if turns_of[client] else None)
    return counts


def _return(turns: list[_Turn], next: _Turn | None) -> None:
    """Replace the first turn, or remove it."""
    if next is None:
        heappop(turns)
    else:
        heapreplace(turns, next)
