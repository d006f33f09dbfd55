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
    everything overdue. `bound` names the widest bound exceeded: `age`, `endpoint`, `client`,
    `zone`, `hub`.
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


class _Retained:
    """What each endpoint may keep of its backlog, and the widest bound that lowered it."""

    def __init__(self, backlogs: Sequence[EndpointBacklog]) -> None:
        self.events = {one.endpoint_id: one.events for one in backlogs}
        self.bytes = {one.endpoint_id: one.bytes for one in backlogs}
        self.bound = {one.endpoint_id: "age" for one in backlogs if one.overdue}

    def lower(self, endpoint_ids: Iterable[int], quota: BacklogQuota, by: str) -> None:
        """Lower the backlogs of endpoints until together they are within a quota."""
        ids = list(endpoint_ids)
        for retained, limit in ((self.events, quota.events), (self.bytes, quota.bytes)):
            if limit is not None:
                self._lower_to(retained, level_down({at: retained[at] for at in ids}, limit), by)

    def lower_bytes(self, endpoint_ids: Iterable[int], limit: int, by: str) -> None:
        """Lower the bytes of endpoints to a limit, exactly."""
        sizes = {at: self.bytes[at] for at in endpoint_ids}
        self._lower_to(self.bytes, level_down(sizes, limit, goal=limit), by)

    def _lower_to(self, retained: dict[int, int], levels: Mapping[int, int], by: str) -> None:
        for endpoint, amount in levels.items():
            if amount < retained[endpoint]:
                retained[endpoint], self.bound[endpoint] = amount, by


def cuts(backlogs: Sequence[EndpointBacklog], bounds: BacklogBounds) -> list[BacklogCut]:
    """Return the cut of each endpoint that has to drop something."""
    retained = _Retained(backlogs)
    of_endpoint = BacklogQuota(bounds.endpoint_events, bounds.endpoint_bytes)
    for one in backlogs:
        retained.lower([one.endpoint_id], of_endpoint, "endpoint")
    clients = _grouped(backlogs, lambda one: one.client_id)
    for client, endpoint_ids in clients.items():
        retained.lower(endpoint_ids, bounds.of_client(client), "client")
    if bounds.zone_quotas:
        for zone, endpoint_ids in _grouped(backlogs, lambda one: one.zone_id).items():
            retained.lower(endpoint_ids, bounds.zone_quotas.get(zone, _NO_QUOTA), "zone")
    if bounds.hub_bytes is not None:
        totals = {
            client: sum(retained.bytes[at] for at in endpoint_ids)
            for client, endpoint_ids in clients.items()
        }
        for client, limit in level_down(totals, bounds.hub_bytes).items():
            if limit < totals[client]:
                retained.lower_bytes(clients[client], limit, "hub")
    return [
        BacklogCut(one, one.events - retained.events[at], one.bytes - retained.bytes[at], bound)
        for one in backlogs
        if (bound := retained.bound.get(at := one.endpoint_id))
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


def _grouped(
    backlogs: Iterable[EndpointBacklog], group: Callable[[EndpointBacklog], int]
) -> dict[int, list[int]]:
    """Return the endpoints of each group."""
    found: dict[int, list[int]] = {}
    for one in backlogs:
        found.setdefault(group(one), []).append(one.endpoint_id)
    return found
