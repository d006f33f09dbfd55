"""Reads of applications and groups. Django module."""

from collections.abc import Sequence

from django.contrib.postgres.aggregates import ArrayAgg
from django.contrib.postgres.fields import ArrayField
from django.db.models import OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce

from eventhub.access.grants import APPLICATIONS
from eventhub.api.announcements import raw_connection
from eventhub.applications.errors import UnknownApplication, UnknownApplicationGroup
from eventhub.applications.models import Application, ApplicationGroup, ApplicationMember
from eventhub.eventlog import streams
from eventhub.streams.selectors import about_stream


def applications_of(*, zone_id: int) -> QuerySet[Application]:
    """Select the applications of a zone."""
    return Application.objects.filter(zone_id=zone_id)


def find_application(*, zone_id: int, name: str) -> Application:
    """Return one application. Raises UnknownApplication."""
    found = applications_of(zone_id=zone_id).filter(name=name).first()
    if found is None:
        raise UnknownApplication(field="application")
    return found


def groups_of(*, zone_id: int) -> QuerySet[ApplicationGroup]:
    """Select the groups of a zone, each with the names of its `applications`, ascending."""
    members = (
        ApplicationMember.objects.filter(group=OuterRef("pk"))
        .order_by()
        .values("group")
        .annotate(names=ArrayAgg("application__name", order_by="application__name"))
    )
    return ApplicationGroup.objects.filter(zone_id=zone_id).annotate(
        applications=Coalesce(Subquery(members.values("names")), Value([], ArrayField(TextField())))
    )


def find_group(*, zone_id: int, name: str) -> ApplicationGroup:
    """Return one group. Raises UnknownApplicationGroup."""
    found = groups_of(zone_id=zone_id).filter(name=name).first()
    if found is None:
        raise UnknownApplicationGroup(field="application_group")
    return found


def member_ids(*, zone_id: int, names: Sequence[str]) -> list[int]:
    """Return the ids of applications. Raises UnknownApplication with the index of a name."""
    rows = applications_of(zone_id=zone_id).filter(name__in=names)
    ids = dict(rows.values_list("name", "pk"))
    for at, name in enumerate(names):
        if name not in ids:
            raise UnknownApplication(field=f"applications.{at}")
    return [*ids.values()]


def reply_about_states(*, zone_id: int) -> None:
    """Make the current reply one about the stream of the zone's states, if there is one: a listener
    that resumes from its sequence misses no change after what the reply shows.
    """
    stream = streams.find_stream(raw_connection(), zone_id, APPLICATIONS)
    if stream is not None:
        about_stream(stream)
