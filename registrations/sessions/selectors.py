"""Reads of sessions and session groups, with the fields of the API. Django module."""

from typing import Any

from django.db.models import Count, F, IntegerField, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce

from eventhub.sessions.models import LIVE, Kind, Session, SessionGroup
from registrations.models import RegistrationGroup


def _registrations(owner: str) -> Any:
    """Return the number of live registrations in the groups of an owner."""
    groups = RegistrationGroup.objects.live().filter(**{owner: OuterRef("pk")}).order_by()
    total = groups.values(owner).annotate(total=Sum("registrations")).values("total")
    return Coalesce(Subquery(total, output_field=IntegerField()), 0)


SESSIONS = (
    Session.objects.exclude(kind=Kind.GROUP)
    .select_related("group")
    .annotate(
        client_name=F("client__name"),
        group_name=F("group__name"),
        registrations=_registrations("session"),
    )
)
SESSION_GROUPS = SessionGroup.objects.annotate(
    client_name=F("client__name"),
    sessions=Coalesce(
        Subquery(
            Session.objects.filter(LIVE, group=OuterRef("pk"))
            .exclude(kind=Kind.GROUP)
            .order_by()
            .values("group")
            .annotate(total=Count("pk"))
            .values("total"),
            output_field=IntegerField(),
        ),
        0,
    ),
    registrations=_registrations("session_group"),
)
