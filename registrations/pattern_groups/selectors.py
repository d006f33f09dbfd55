"""Reads of pattern groups and patterns. Django module."""

from collections.abc import Iterable

from django.db.models import (
    Case,
    Count,
    F,
    FilteredRelation,
    JSONField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from eventhub.access.principal import Actor
from eventhub.api.announcements import raw_connection
from registrations import statements
from registrations.models import CURRENT, LIVE
from registrations.pattern_groups.models import (
    PatternGroup,
    PatternStatus,
    PatternVersion,
    StoredPattern,
)
from registrations.scope import scope

_HAS_STATE = Q(status__version_id=F("current__id"))
STOPPED = "stopped"
STATES = (*PatternStatus.State.values, STOPPED)
_RUNNING = PatternStatus.State.RUNNING
_STATE = Case(
    When(current__suspended=True, then=Value(PatternStatus.State.SUSPENDED)),
    When(_HAS_STATE & ~Q(status__state=_RUNNING), then=F("status__state")),
    When(group__lease__fault__isnull=False, then=Value(STOPPED)),
    default=Value(_RUNNING),
    output_field=TextField(),
)


def groups_of(*, actor: Actor) -> QuerySet[PatternGroup]:
    """Select the live groups that an actor may see, with what the API shows of them but the names
    of their streams.
    """
    suspended = PatternVersion.objects.filter(CURRENT, group=OuterRef("pk"), suspended=True)
    count = suspended.order_by().values("group").annotate(count=Count("pk")).values("count")
    return _visible(PatternGroup.objects.all(), actor).annotate(
        client_name=F("client__name"),
        output_stream_name=F("output_stream__name"),
        suspended_patterns=Coalesce(Subquery(count), 0),
        consumed=F("lease__position"),
        fault=F("lease__fault"),
    )


def group(*, actor: Actor, id: int) -> PatternGroup:
    """Return a live group."""
    found: PatternGroup = groups_of(actor=actor).get(pk=id)
    return found


def patterns_of(*, actor: Actor) -> QuerySet[StoredPattern]:
    """Select the live patterns that an actor may see, with their current versions and what became
    of these.
    """
    found = StoredPattern.objects.annotate(
        current=FilteredRelation("versions", condition=Q(versions__until_barrier=None)),
        client_name=F("client__name"),
        group_name=F("group__name"),
        version=F("current__number"),
        version_id=F("current__id"),
        language=F("current__language"),
        text=F("current__text"),
        once=F("current__once"),
        recent=F("current__recent"),
        cost=F("current__cost"),
        is_suspended=F("current__suspended"),
        from_barrier=F("current__from_barrier"),
        state=_STATE,
        fault=Case(
            When(_HAS_STATE & ~Q(status__state=_RUNNING), then=F("status__fault")),
            When(current__suspended=False, then=F("group__lease__fault")),
        ),
        matches=Coalesce(F("status__matches"), 0),
        dropped=Coalesce(F("status__dropped"), Value({}, JSONField())),
    )
    return _visible(found, actor)


def stream_names(groups: Iterable[PatternGroup]) -> dict[int, list[str]]:
    """Return the names of the streams of groups, by the groups' ids."""
    groups = [*groups]
    ids = {id for group in groups for id in group.streams}
    names = statements.stream_names(raw_connection(), ids)
    return {group.pk: [names[id] for id in group.streams] for group in groups}


def _visible(found: QuerySet, actor: Actor) -> QuerySet:
    client_id = scope(actor=actor)
    of_client = {} if client_id is None else {"client_id": client_id}
    return found.filter(LIVE, zone_id=actor.zone_id, **of_client)
