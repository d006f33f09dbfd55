"""The API of sources. Django module."""

from typing import Any

from django.db.models import QuerySet

from eventhub.api.if_match import IF_MATCH
from eventhub.api.permissions import IsAuthenticated
from eventhub.api.resource import operation
from eventhub.base import errors
from eventhub.eventlog.errors import StreamDeleting
from registrations.resource import OwnedView
from registrations.sources import selectors, services
from registrations.sources.errors import SourceExists, UnknownSource
from registrations.sources.filtersets import SourceFilters
from registrations.sources.models import Source
from registrations.sources.serializers import (
    CreatedSourceSerializer,
    NewSourceSecretSerializer,
    NewSourceSerializer,
    NewUrlSerializer,
    ReplacedSecretSerializer,
    ReplacedUrlSerializer,
    SourceChangeSerializer,
    SourceSerializer,
)


class Sources(OwnedView):
    """The sources of a client to streams that the key may emit to, or of all clients of a zone.
    Another client's source is not found.
    """

    noun = "a source", "sources"
    kind = "source"
    unknown = UnknownSource
    lookup_url_kwarg = "source"
    permission_classes = (IsAuthenticated,)
    queryset = Source.objects.all()
    serializer_class = SourceSerializer
    filterset_class = SourceFilters

    def get_queryset(self) -> QuerySet[Source]:
        return selectors.sources_of(actor=self.actor)

    @operation(
        "Create a source; its URL and its secret are shown only once",
        *(SourceExists, errors.LimitReached, errors.UnknownStream, StreamDeleting),
        *(errors.MissingField, errors.FieldTooLong),
        body=NewSourceSerializer,
        response=CreatedSourceSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Source:
        owner = self.owner(body)
        fields = services.NewSource(**{"options": {}, "mapping": {}, **body})
        return services.create_source(actor=self.actor, owner=owner, fields=fields)

    @operation(
        "Change the map or the options of a source, disable or enable it",
        *(errors.MissingField, errors.FieldTooLong),
        body=SourceChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> Source:
        with self.changing() as source:
            return services.change_source(actor=self.actor, source=source, given=body)

    @operation("Delete a source")
    def perform_destroy(self) -> None:
        with self.changing() as source:
            services.delete_source(actor=self.actor, source=source)


class SourceUrls(Sources):
    """The URL of a source."""

    @operation(
        "Replace the URL of a source; the new one is shown only once",
        body=NewUrlSerializer,
        response=ReplacedUrlSerializer,
        parameters=(IF_MATCH,),
    )
    def perform_create(self, body: dict[str, Any]) -> Source:
        with self.changing() as source:
            return services.replace_url(actor=self.actor, source=source, **body)


class SourceSecrets(Sources):
    """The secret of a source."""

    @operation(
        "Replace the secret of a source; a generated one is shown only once",
        body=NewSourceSecretSerializer,
        response=ReplacedSecretSerializer,
        parameters=(IF_MATCH,),
    )
    def perform_create(self, body: dict[str, Any]) -> Source:
        with self.changing() as source:
            return services.replace_secret(actor=self.actor, source=source, **body)
