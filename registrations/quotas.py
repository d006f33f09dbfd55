"""How many registrations, endpoints, timers and patterns a client may have, by the quotas of the
client and its zone. Django module.
"""

from typing import NamedTuple

from django.db.models import Q, Sum

from eventhub.access.models import Quota
from eventhub.access.quotas import Kind, quota_reached
from eventhub.base import limits
from eventhub.base.errors import LimitReached
from registrations.models import Endpoint, RegistrationOwner
from registrations.pattern_groups.models import PatternGroup
from registrations.timers.models import TimerCount


def used_in_zone(kind: Kind, zone_id: int) -> int:
    """Return how many of these the clients of a zone have."""
    if kind == "endpoints":
        return int(Endpoint.objects.live().filter(zone_id=zone_id).count())
    if kind == "timers":
        counts = TimerCount.objects.filter(zone_id=zone_id)
        return int(counts.aggregate(total=Sum("timers"))["total"] or 0)
    if kind == "patterns":
        groups = PatternGroup.objects.live().filter(zone_id=zone_id)
        return int(groups.aggregate(total=Sum("patterns"))["total"] or 0)
    owners = RegistrationOwner.objects.filter(client__zone_id=zone_id)
    return int(owners.aggregate(total=Sum("registrations"))["total"] or 0)


class Room(NamedTuple):
    """How many more a client may have, and the error for more than that."""

    left: int
    refusal: LimitReached


def room(kind: Kind, zone_id: int, client_id: int, *, used: int) -> Room:
    """Return the room of a client of the zone that has `used` and is locked.

    Quotas that apply are locked until the end of the transaction, so that the clients of a zone
    cannot exceed the zone's quota together.
    """
    found = Room(hub_bound(kind) - used, LimitReached(limit=hub_bound(kind)))
    quotas = Quota.objects.filter(
        Q(client_id=client_id) | Q(client=None, zone_id=zone_id), kind=kind
    )
    for quota in quotas.select_for_update(of=("self",)).order_by("pk"):
        of_zone = quota.client_id is None
        left = quota.value - (used_in_zone(kind, zone_id) if of_zone else used)
        if left < found.left:
            found = Room(left, quota_reached(kind, quota.value, of_zone=of_zone))
    return found


def require_room(kind: Kind, zone_id: int, client_id: int, *, used: int, more: int = 1) -> None:
    """Raise LimitReached unless the client of the zone, which has `used` and is locked, may have
    `more`.
    """
    found = room(kind, zone_id, client_id, used=used)
    if more > found.left:
        raise found.refusal


def hub_bound(kind: Kind) -> int:
    """Return the bound of the hub for one client."""
    return int(getattr(limits, f"{kind.upper()}_PER_CLIENT_MAX"))
