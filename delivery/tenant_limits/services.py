"""Sets and reads the limits of tenants: of a zone, and of its clients. Django module."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q

from delivery.forward.bounds import BacklogSettings, bounds_of
from delivery.tenant_limits.usage import Bounded, used
from eventhub.access.models import Client, Quota
from eventhub.access.principal import Actor
from eventhub.access.quotas import KINDS, OF_CLIENTS, Kind
from eventhub.access.rate_limits import events_in_last_second
from eventhub.access.selectors import find_client, lock_client
from eventhub.accounts.services import lock_zone
from eventhub.api.announcements import announce_all, change_of, raw_connection
from eventhub.base.env import read_env
from registrations.quotas import hub_bound
from registrations.scope import owner


def limits_of(*, actor: Actor, client: str | None) -> dict[str, Any]:
    """Return the limits of a client (None: of the key's own), and for managers those of the zone,
    each with its present use.

    Raises NotFound, and Forbidden for another client if the actor is not a manager of the zone.
    """
    client_id = None
    if actor.principal is not None:
        found = owner(actor=actor, name=client)
        client_id, client = found.id, found.name
    elif client is not None:
        client_id = find_client(zone_id=actor.zone_id, name=client).pk
    quotas = {
        (quota.client_id, quota.kind): quota.value
        for quota in Quota.objects.filter(
            Q(client_id=client_id) | Q(client=None), zone_id=actor.zone_id
        )
    }
    sees_zone = actor.principal is None or actor.manages_zone
    return {
        "name": client,
        "client": None if client_id is None else _limits(quotas, actor.zone_id, client_id),
        "zone": _limits(quotas, actor.zone_id, None) if sees_zone else None,
    }


def _limits(
    quotas: Mapping[tuple[int | None, str], int], zone_id: int, client_id: int | None
) -> dict[str, dict[str, int | None]]:
    kinds = KINDS if client_id is None else OF_CLIENTS
    bounded = {kind: Bounded(zone_id, client_id or 0, kind) for kind in kinds}
    in_use = used(raw_connection(), [*bounded.values()])
    found: dict[str, dict[str, int | None]] = {}
    for kind in kinds:
        quota = quotas.get((client_id, kind))
        of_hub = None if client_id is None else _hub_bound(kind)
        bounds = [bound for bound in (quota, of_hub) if bound is not None]
        now = in_use.get(bounded[kind])
        if kind == "events_per_s" and quota is not None:
            now = events_in_last_second(raw_connection(), zone_id, client_id or 0, quota)
        found[kind] = {"quota": quota, "limit": min(bounds, default=None), "used": now}
    return found


def _hub_bound(kind: Kind) -> int | None:
    """Return the bound of the hub for one client in all processes; None: none. That of a backlog
    is lower on a small disk.
    """
    if kind in ("registrations", "endpoints", "timers", "patterns"):
        return hub_bound(kind)
    env = read_env()
    bounds = bounds_of(BacklogSettings(env.backlog_events, env.backlog_bytes), None)
    of_backlog = {"backlog_events": bounds.client_events, "backlog_bytes": bounds.client_bytes}
    return of_backlog.get(kind)


def set_quotas(*, actor: Actor, client: str | None, values: Mapping[Kind, int | None]) -> None:
    """Set the quotas of a client, or of the zone as a whole (None); those that are not given, or
    null, are removed. Takes effect within a second. Raises NotFound.
    """
    given = {kind: value for kind, value in values.items() if value is not None}
    with transaction.atomic():
        found: Client | None = None
        if client is None:
            lock_zone(zone_id=actor.zone_id)
        else:
            found = lock_client(zone_id=actor.zone_id, name=client)
        own = Quota.objects.filter(zone_id=actor.zone_id, client=found)
        if dict(own.values_list("kind", "value")) == given:
            return
        own.exclude(kind__in=given).delete()
        Quota.objects.bulk_create(  # rows stay: requests that wait for their locks read them again
            (
                Quota(zone_id=actor.zone_id, client=found, kind=kind, value=value)
                for kind, value in given.items()
            ),
            update_conflicts=True,
            update_fields=["value"],
            unique_fields=["zone", "client", "kind"],
        )
        kinds = KINDS if client is None else OF_CLIENTS
        quotas = {kind: given.get(kind) for kind in kinds}
        if client is None:
            change = change_of("zone.quotas_set", actor.zone_id, actor.zone, **quotas)
        else:
            change = change_of("client.quotas_set", actor.zone_id, client, **quotas)
        announce_all(zone=actor.zone, announcements=[change])
