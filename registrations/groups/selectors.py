"""Reads of groups of registrations, as far as the actor may see them."""

from django.db.models import Exists, F, OuterRef, QuerySet

from eventhub.access.actor import Actor
from registrations.models import CURRENT, RegistrationGroup, Suspension
from registrations.owners import scope


def groups_of(*, actor: Actor) -> QuerySet[RegistrationGroup]:
    """The live groups that the actor deals with: a client's, or all of the zone. `suspended`: since
    a barrier that has no end yet.
    """
    found = RegistrationGroup.objects.live().filter(zone_id=actor.zone_id)
    client_id = scope(actor=actor)
    whose = {} if client_id is None else {"client_id": client_id}
    suspended = Exists(Suspension.objects.filter(CURRENT, group=OuterRef("pk")))
    return found.filter(**whose).annotate(client_name=F("client__name"), suspended=suspended)
