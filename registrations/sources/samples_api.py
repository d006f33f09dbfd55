"""The API of the last requests to a source, and its test bench. Django module."""

from typing import Any

from django.db.models import QuerySet

from eventhub.access import roles
from eventhub.api.resource import operation, parse_number
from eventhub.base import errors
from registrations.resource import OwnedView
from registrations.sources import bench, selectors
from registrations.sources.api import Sources
from registrations.sources.errors import UnknownSample, UnknownSource, UnmappedDelivery
from registrations.sources.filtersets import SampleFilters
from registrations.sources.models import Source, SourceSample
from registrations.sources.serializers import (
    MappedEventSerializer,
    SourceSampleSerializer,
    SourceTestSerializer,
    WholeSampleSerializer,
)


class SourceSamples(OwnedView):
    """The last requests to a source, verified and refused ones, the newest first."""

    noun = "a sample", "the last requests to a source"
    unknown = UnknownSample
    lookup_url_kwarg = "sample"
    permission_classes = Sources.permission_classes
    queryset = SourceSample.objects.all()
    serializer_class = SourceSampleSerializer
    filterset_class = SampleFilters
    ordering = ("-pk",)

    @operation("List the last requests to a source", UnknownSource)
    def get_queryset(self) -> QuerySet[SourceSample]:
        return selectors.samples_of(source_id=source_in_path(self).pk)

    @operation(
        "Show one of the last requests to a source", UnknownSource, response=WholeSampleSerializer
    )
    def get_object(self) -> SourceSample:
        found: SourceSample = super().get_object()
        return found


class SourceTests(OwnedView):
    """The test bench of a source."""

    permission_classes = Sources.permission_classes
    queryset = Source.objects.all()
    serializer_class = MappedEventSerializer

    @operation(
        "Apply the map of a source, or another one, to a request without emitting it",
        *(UnknownSource, UnknownSample, UnmappedDelivery, errors.MalformedJson, errors.InvalidUtf8),
        *(errors.FieldTooLong, errors.TooDeep, errors.NumberOutOfRange, errors.MissingField),
        body=SourceTestSerializer,
        response=MappedEventSerializer,
        status=200,
        role=roles.VIEWER,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"event": bench.try_map(source_in_path(self), body)}


def source_in_path(view: OwnedView) -> Source:
    """Return the source that the path names. Raises UnknownSource."""
    unknown = UnknownSource(field="source")
    number = parse_number(view.kwargs["source"], error=unknown)
    found: Source | None = selectors.sources_of(actor=view.actor).filter(pk=number).first()
    if found is None:
        raise unknown
    return found
