"""Reads of sources. Django module."""

from django.db.models import F, OuterRef, QuerySet, Subquery

from eventhub.access.principal import Actor
from registrations.scope import emitting_of
from registrations.sources.models import Source, SourceSample, SourceSecret

COUNTS = ("stored", "repeated", "answered", "failed", "refused")


def sources_of(*, actor: Actor) -> QuerySet[Source]:
    """Select the sources that an actor may see: of its own client, to streams that it may emit to;
    or all sources of the zone for its managers.
    """
    former = SourceSecret.objects.filter(source=OuterRef("pk"), expires_at__isnull=False)
    found = Source.objects.annotate(
        client_name=F("client__name"),
        stream_name=F("stream__name"),
        former_secret_expires_at=Subquery(former.order_by("-pk").values("expires_at")[:1]),
        verified_at=F("sourcecount__verified_at"),
        refused_at=F("sourcecount__refused_at"),
        **{name: F(f"sourcecount__{name}") for name in COUNTS},
    )
    return emitting_of(found, actor=actor)


def samples_of(*, source_id: int) -> QuerySet[SourceSample]:
    """Select the last requests to a source."""
    return SourceSample.objects.filter(source_id=source_id)
