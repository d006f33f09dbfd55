"""Reads of sessions and session groups, with the fields of the API. Django module."""

from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Greatest

from eventhub.access.principal import Actor
from eventhub.sessions.models import LIVE, Kind, Quality, Session, SessionCursor, SessionGroup
from registrations.models import RegistrationGroup
from registrations.scope import listenable_streams

_OF_STREAMS = Q(stream__deleted_at__isnull=True)
_LAG = Greatest(F("stream__streamhead__sequence") - F("sequence"), 0)


def _registrations(owner: str) -> Any:
    """Return the number of live registrations in the groups of an owner."""
    groups = RegistrationGroup.objects.live().filter(**{owner: OuterRef("pk")}).order_by()
    total = groups.values(owner).annotate(total=Sum("registrations")).values("total")
    return Coalesce(Subquery(total, output_field=IntegerField()), 0)


def _lag() -> Any:
    """Return the number of events after the positions of a reliable consumer session; null for
    others, which have no positions.
    """
    cursors = SessionCursor.objects.filter(_OF_STREAMS, session=OuterRef("pk")).order_by()
    total = cursors.values("session").annotate(total=Sum(_LAG)).values("total")
    after = Coalesce(Subquery(total, output_field=BigIntegerField()), 0)
    reliable = Q(kind=Kind.CONSUMER) & (
        Q(group__isnull=True, quality=Quality.RELIABLE) | Q(group__quality=Quality.RELIABLE)
    )
    return Case(When(reliable, then=after), default=Value(None), output_field=BigIntegerField())


CLIENTS_SESSIONS = Session.objects.exclude(kind=Kind.GROUP)
SESSIONS = CLIENTS_SESSIONS.select_related("group").annotate(
    client_name=F("client__name"),
    group_name=F("group__name"),
    registrations=_registrations("session"),
    lag=_lag(),
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


def positions_of(*, actor: Actor, session: Session) -> QuerySet[SessionCursor]:
    """Return the positions of a session in the streams that the actor may listen to, with the last
    sequence of each stream.
    """
    found = SessionCursor.objects.filter(
        _OF_STREAMS, listenable_streams(actor=actor).streams(), session=session.pk
    )
    return found.annotate(
        stream_name=F("stream__name"), last=F("stream__streamhead__sequence"), lag=_LAG
    )
