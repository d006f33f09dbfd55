"""Reads of endpoints, as far as the actor may see them."""

from django.db.models import F, QuerySet

from eventhub.access.actor import Actor
from registrations.models import Endpoint
from registrations.owners import scope

HEALTH = ("attempted_at", "outcome", "status", "delivered_at", "failing_since")


def endpoints_of(*, actor: Actor) -> QuerySet[Endpoint]:
    """The live endpoints that the actor deals with: a client's, or all of the zone; with how they
    answer, all null of one that was not tried.
    """
    found = Endpoint.objects.live().filter(zone_id=actor.zone_id)
    client_id = scope(actor=actor)
    whose = {} if client_id is None else {"client_id": client_id}
    health = {name: F(f"health__{name}") for name in HEALTH}
    return found.filter(**whose).annotate(client_name=F("client__name"), **health)
