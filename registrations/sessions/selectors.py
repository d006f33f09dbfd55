"""Reads of sessions and session groups, with the fields of the API. Django module."""

from typing import Any

from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    DateTimeField,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Concat, Greatest

from eventhub.access.principal import Actor
from eventhub.monitoring.models import Member
from eventhub.sessions.models import (
    LIVE,
    Kind,
    Quality,
    Session,
    SessionClaim,
    SessionCursor,
    SessionGroup,
    Sharing,
)
from registrations.models import RegistrationGroup
from registrations.scope import listenable_streams

_OF_STREAMS = Q(stream__deleted_at__isnull=True)
_LAG = Greatest(F("stream__streamhead__sequence") - F("sequence"), 0)


def _registrations(owner: str) -> Any:
    """Return the number of live registrations in the groups of an owner."""
    groups = RegistrationGroup.objects.live().filter(**{owner: OuterRef("pk")}).order_by()
    total = groups.values(owner).annotate(total=Sum("registrations")).values("total")
    return Coalesce(Subquery(total, output_field=IntegerField()), 0)


def _lag(owner: str, *conditions: Q) -> Any:
    """Return the number of events after the positions of an owner."""
    found = SessionCursor.objects.filter(_OF_STREAMS, *conditions, (owner, OuterRef("pk")))
    cursors = found.order_by()
    total = cursors.values(owner).annotate(total=Sum(_LAG)).values("total")
    return Coalesce(Subquery(total, output_field=BigIntegerField()), 0)


def _claims(owner: str, *conditions: Q) -> Any:
    """Return the number of claims of an owner."""
    claims = SessionClaim.objects.filter(*conditions, (owner, OuterRef("pk"))).order_by()
    total = claims.values(owner).annotate(total=Count("pk")).values("total")
    return Coalesce(Subquery(total, output_field=IntegerField()), 0)


def _if(condition: Q, then: Any) -> Any:
    """Return a number, or null without the condition."""
    return Case(When(condition, then=then), default=Value(None), output_field=BigIntegerField())


# a process that was killed did not end its connections, and pulls have none
_CONNECTED = Exists(
    Member.objects.filter(left_at=None, kind=Member.Kind.WEB)
    .annotate(process=Concat("node", Value(" "), "pid", output_field=TextField()))
    .filter(process=OuterRef("attached_process"))
) & Q(attachment__isnull=False)
# best-effort sessions have no positions; of a group that shares, its own session has them
_RELIABLE = Q(kind=Kind.CONSUMER) & (
    Q(group__isnull=True, quality=Quality.RELIABLE) | Q(group__quality=Quality.RELIABLE)
)
_SHARES = Q(sharing=Sharing.ONE)
_OF_GROUP = "session__group", Q(session__kind=Kind.GROUP)
CLIENTS_SESSIONS = Session.objects.exclude(kind=Kind.GROUP)
SESSIONS = CLIENTS_SESSIONS.select_related("group").annotate(
    client_name=F("client__name"),
    group_name=F("group__name"),
    registrations=_registrations("session"),
    connected_at=Case(When(_CONNECTED, then=F("attached_at")), output_field=DateTimeField()),
    connected_process=Case(When(_CONNECTED, then=F("attached_process")), output_field=TextField()),
    lag=_if(_RELIABLE, _lag("session")),
    in_flight=_claims("holder"),
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
    lag=_if(_SHARES, _lag(*_OF_GROUP)),
    in_flight=_if(_SHARES, _claims(*_OF_GROUP)),
    registrations=_registrations("session_group"),
)


def positions_of(*, actor: Actor, owner: Session | SessionGroup) -> QuerySet[SessionCursor]:
    """Return the positions of a session, or of a group that shares, in the streams that the actor
    may listen to, with the last sequence of each stream.
    """
    found = SessionCursor.objects.filter(
        _OF_STREAMS, listenable_streams(actor=actor).streams(), _owned(owner, "session")
    )
    return found.annotate(
        stream_name=F("stream__name"), last=F("stream__streamhead__sequence"), lag=_LAG
    )


def claims_of(*, actor: Actor, owner: Session | SessionGroup) -> QuerySet[SessionClaim]:
    """Return the claims that a session has, also those of its group, or all of a group that shares,
    in the streams that the actor may listen to.
    """
    found = SessionClaim.objects.filter(
        _OF_STREAMS, listenable_streams(actor=actor).streams(), _owned(owner, "holder")
    )
    return found.annotate(stream_name=F("stream__name"), holder_name=F("holder__name"))


def _owned(owner: Session | SessionGroup, session: str) -> Q:
    """Return the condition for rows of a session, by this field, or of a group that shares."""
    if isinstance(owner, Session):
        return Q((session, owner.pk))
    lookup, of_queue = _OF_GROUP
    return Q((lookup, owner.pk)) & of_queue
