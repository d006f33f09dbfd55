"""How much may wait for an endpoint, for a client and in the hub, and what has to go. Plain module.

Of what is too much for several together, the largest gives first: all are cut to one level, and
those below it keep what they have.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from eventhub.base import limits

K = TypeVar("K", bound=Hashable)


class Wanted(NamedTuple):
    """What the hub's settings let wait for one endpoint."""

    events: int = limits.BACKLOG_EVENTS_DEFAULT
    bytes: int = limits.BACKLOG_BYTES_DEFAULT
    age_s: int = limits.BACKLOG_AGE_S_DEFAULT


class Bounds(NamedTuple):
    """What may wait; `bytes` of the hub may be without bound."""

    endpoint_events: int
    endpoint_bytes: int
    client_events: int
    client_bytes: int
    hub_bytes: int | None
    age_s: int


class Waiting(NamedTuple):
    """What waits for an endpoint. `overdue`: events that have waited too long; `names`:
    registrations that the deliveries name together.
    """

    endpoint_id: int
    client_id: int
    events: int
    bytes: int
    overdue: int = 0
    names: int = 0


class Cut(NamedTuple):
    """What has to go, the oldest first: so many events and so many bytes at least, and all that is
    overdue. `bound`: which one says so, the widest: `age`, `endpoint`, `client`, `hub`.
    """

    waiting: Waiting
    events: int
    bytes: int
    bound: str


def bounds_of(wanted: Wanted, capacity: int | None) -> Bounds:
    """`capacity`: bytes that the hub's data may take; None: nobody says."""
    factor = limits.BACKLOG_CLIENT_FACTOR
    if capacity is None:
        endpoint, client, hub = wanted.bytes, factor * wanted.bytes, None
    else:
        endpoint = min(wanted.bytes, int(capacity * limits.BACKLOG_SHARE_ENDPOINT))
        client = min(factor * wanted.bytes, int(capacity * limits.BACKLOG_SHARE_CLIENT))
        hub = int(capacity * limits.BACKLOG_SHARE_HUB)
    return Bounds(wanted.events, endpoint, factor * wanted.events, client, hub, wanted.age_s)


def cuts(found: Sequence[Waiting], bounds: Bounds) -> list[Cut]:
    """What has to go, of each endpoint of which something has."""
    clients = {one.endpoint_id: one.client_id for one in found}
    events = {one.endpoint_id: one.events for one in found}
    sizes = {one.endpoint_id: one.bytes for one in found}
    bound = {one.endpoint_id: "age" for one in found if one.overdue}

    def keep(kept: dict[int, int], less: Mapping[int, int], by: str) -> None:
        for endpoint, amount in less.items():
            if amount < kept[endpoint]:
                kept[endpoint], bound[endpoint] = amount, by

    for endpoint in clients:
        keep(events, leveled({endpoint: events[endpoint]}, bounds.endpoint_events), "endpoint")
        keep(sizes, leveled({endpoint: sizes[endpoint]}, bounds.endpoint_bytes), "endpoint")
    for own in _by(clients, clients.__getitem__).values():
        keep(events, leveled({at: events[at] for at in own}, bounds.client_events), "client")
        keep(sizes, leveled({at: sizes[at] for at in own}, bounds.client_bytes), "client")
    if bounds.hub_bytes is not None:
        groups = _by(clients, clients.__getitem__)
        totals = {client: sum(sizes[at] for at in own) for client, own in groups.items()}
        for client, most in leveled(totals, bounds.hub_bytes).items():
            if most < totals[client]:
                less = leveled({at: sizes[at] for at in groups[client]}, most, goal=most)
                keep(sizes, less, "hub")
    return [
        Cut(one, one.events - events[at], one.bytes - sizes[at], bound[at])
        for one in found
        if (at := one.endpoint_id) in bound
    ]


def leveled(sizes: Mapping[K, int], most: int, *, goal: int | None = None) -> dict[K, int]:
    """What each keeps: all of it up to `most` together; else all below a level, and those above it
    the level, so that they come to the goal.
    """
    if sum(sizes.values()) <= most:
        return dict(sizes)
    left = int(most * limits.BACKLOG_SHARE_GOAL) if goal is None else goal
    level = 0
    for place, size in enumerate(sorted(sizes.values())):
        level = left // (len(sizes) - place)
        if size > level:
            break
        left -= size
    return {key: min(size, level) for key, size in sizes.items()}


def _by(keys: Iterable[int], group: Callable[[int], int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key in keys:
        found.setdefault(group(key), []).append(key)
    return found
