"""Reads the clients that are connected now. Django module."""

from datetime import timedelta

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Now

from delivery.models import SocketCount, WebProcess
from eventhub.access.models import Client
from eventhub.access.principal import Actor
from eventhub.access.selectors import live_clients
from eventhub.base import limits
from eventhub.monitoring.models import ClientPresence


def connected_clients(*, actor: Actor) -> QuerySet[Client]:
    """Select the clients with `sockets` in any web process, and `since` when they are connected if
    the zone announces that. Managers of the zone see all of them, a client itself.
    """
    lost_s = timedelta(seconds=limits.SOCKETS_LOST_S)
    alive = WebProcess.objects.filter(
        last_seen_at__gt=Now() - lost_s, last_seen_at__lt=Now() + lost_s
    )
    counts = (
        SocketCount.objects.filter(
            zone_id=actor.zone_id, client_id=OuterRef("pk"), process_id__in=alive.values("pk")
        )
        .order_by()
        .values("client_id")
        .annotate(total=Sum("sockets"))
    )
    announced = ClientPresence.objects.filter(
        zone_id=actor.zone_id, client_id=OuterRef("pk"), absent_since=None
    )
    found = live_clients(zone_id=actor.zone_id)
    if actor.principal is not None and not actor.manages_zone:
        found = found.filter(pk=actor.principal.client_id)
    return found.annotate(
        sockets=Subquery(counts.values("total"), output_field=IntegerField()),
        since=Subquery(announced.values("since")),
    ).filter(sockets__gt=0)
