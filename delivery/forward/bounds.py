"""The bounds of the backlog for an endpoint, a client and the hub, and what has to be dropped to
meet them. Plain module.

Where several together exceed a bound, the largest are cut first: all are cut to one level, and
those below it keep everything.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from eventhub.base import limits

K = TypeVar("K", bound=Hashable)


class BacklogSettings(NamedTuple):
    """The bounds for one endpoint that the hub's settings give."""

    events: int = limits.BACKLOG_EVENTS_DEFAULT
    bytes: int = limits.BACKLOG_BYTES_DEFAULT
    age_s: int = limits.BACKLOG_AGE_S_DEFAULT


class BacklogQuota(NamedTuple):
    """The quota of a client or a zone; None: none."""

    events: int | None = None
    bytes: int | None = None


class BacklogBounds(NamedTuple):
    """The bounds of pending deliveries; `hub_bytes` None: unbounded. Quotas are by client and by
    zone.
    """

    endpoint_events: int
    endpoint_bytes: int
    client_events: int
    client_bytes: int
    hub_bytes: int | None
    age_s: int
    client_quotas: Mapping[int, BacklogQuota] = {}
    zone_quotas: Mapping[int, BacklogQuota] = {}

    def of_client(self, client_id: int) -> BacklogQuota:
        """Return the bounds of all endpoints of a client."""
        quota = self.client_quotas.get(client_id, _NO_QUOTA)
        return BacklogQuota(
            _lower(self.client_events, quota.events), _lower(self.client_bytes, quota.bytes)
        )


_NO_QUOTA = BacklogQuota()


def _lower(bound: int, quota: int | None) -> int:
    return bound if quota is None else min(bound, quota)


class EndpointBacklog(NamedTuple):
    """The pending deliveries of an endpoint. `overdue`: events pending for too long;
    `registrations`: the registrations that the deliveries name in total; `zone_id`: of the client.
    """

    endpoint_id: int
    client_id: int
    events: int
    bytes: int
    overdue: int = 0
    registrations: int = 0
    zone_id: int = 0


class BacklogCut(NamedTuple):
    """What an endpoint has to drop, the oldest first: at least this many events and bytes, and
    everything overdue. `bound` names the widest bound exceeded: `age`, `endpoint`, `client`, `zone`,
    `hub`.
    """

    backlog: EndpointBacklog
    events: int
    bytes: int
    bound: str


def bounds_of(settings: BacklogSettings, capacity: int | None) -> BacklogBounds:
    """Return the bounds. `capacity`: the bytes that the hub's data may take; None: unknown."""
    factor = limits.BACKLOG_CLIENT_FACTOR
    if capacity is None:
        endpoint, client, hub = settings.bytes, factor * settings.bytes, None
    else:
        endpoint = min(settings.bytes, int(capacity * limits.BACKLOG_SHARE_ENDPOINT))
        client = min(factor * settings.bytes, int(capacity * limits.BACKLOG_SHARE_CLIENT))
        hub = int(capacity * limits.BACKLOG_SHARE_HUB)
    return BacklogBounds(
        settings.events, endpoint, factor * settings.events, client, hub, settings.age_s
    )


def cuts(backlogs: Sequence[EndpointBacklog], bounds: BacklogBounds) -> list[BacklogCut]:
    """Return the cut of each endpoint that has to drop something."""
    clients = {one.endpoint_id: one.client_id for one in backlogs}
    events = {one.endpoint_id: one.events for one in backlogs}
    sizes = {one.endpoint_id: one.bytes for one in backlogs}
    bound = {one.endpoint_id: "age" for one in backlogs if one.overdue}

    def lower(retained: dict[int, int], limits_by_endpoint: Mapping[int, int], by: str) -> None:
        for endpoint, amount in limits_by_endpoint.items():
            if amount < retained[endpoint]:
                retained[endpoint], bound[endpoint] = amount, by

    for endpoint in clients:
        lower(events, level_down({endpoint: events[endpoint]}, bounds.endpoint_events), "endpoint")
        lower(sizes, level_down({endpoint: sizes[endpoint]}, bounds.endpoint_bytes), "endpoint")

    def lower_together(endpoint_ids: Iterable[int], quota: BacklogQuota, by: str) -> None:
        for retained, limit in ((events, quota.events), (sizes, quota.bytes)):
            if limit is not None:
                lower(retained, level_down({at: retained[at] for at in endpoint_ids}, limit), by)

    for client, endpoint_ids in _grouped(clients, clients.__getitem__).items():
        lower_together(endpoint_ids, bounds.of_client(client), "client")
    if bounds.zone_quotas:
        zones = {one.endpoint_id: one.zone_id for one in backlogs}
        for zone, endpoint_ids in _grouped(clients, zones.__getitem__).items():
            lower_together(endpoint_ids, bounds.zone_quotas.get(zone, _NO_QUOTA), "zone")
    if bounds.hub_bytes is not None:
        groups = _grouped(clients, clients.__getitem__)
        totals = {
            client: sum(sizes[at] for at in endpoint_ids) for client, endpoint_ids in groups.items()
        }
        for client, limit in level_down(totals, bounds.hub_bytes).items():
            if limit < totals[client]:
                limits_by_endpoint = level_down(
                    {at: sizes[at] for at in groups[client]}, limit, goal=limit
                )
                lower(sizes, limits_by_endpoint, "hub")
    return [
        BacklogCut(one, one.events - events[at], one.bytes - sizes[at], bound[at])
        for one in backlogs
        if (at := one.endpoint_id) in bound
    ]


def level_down(sizes: Mapping[K, int], limit: int, *, goal: int | None = None) -> dict[K, int]:
    """Return what each keeps: everything if the sum is within `limit`; otherwise at most a common
    level, chosen so that the sum meets the goal.
    """
    if sum(sizes.values()) <= limit:
        return dict(sizes)
    left = int(limit * limits.BACKLOG_SHARE_GOAL) if goal is None else goal
    level = 0
    for place, size in enumerate(sorted(sizes.values())):
        level = left // (len(sizes) - place)
        if size > level:
            break
        left -= size
    return {key: min(size, level) for key, size in sizes.items()}


def _grouped(keys: Iterable[int], group: Callable[[int], int]) -> dict[int, list[int]]:
    backlogs: dict[int, list[int]] = {}
    for key in keys:
        backlogs.setdefault(group(key), []).append(key)
    return backlogs
