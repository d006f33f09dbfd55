"""The API of pattern groups and patterns. Django module."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.access.sessions import UnknownSession
from eventhub.api.json import StrictJSONListParser
from eventhub.api.problems import validation_error
from eventhub.api.resource import operation
from eventhub.base import errors, limits
from eventhub.eventlog.errors import StreamDeleting
from registrations.agents.errors import ProgramSyntax, ProgramTooLarge
from registrations.errors import TransientStream
from registrations.filters.errors import FilterSyntax, FilterTooLarge
from registrations.pattern_groups import group_services, selectors, services
from registrations.pattern_groups.definition import PatternDefinition
from registrations.pattern_groups.errors import (
    PatternExists,
    PatternGroupExists,
    PatternsTooCostly,
    TooManyPatterns,
    UnknownPattern,
    UnknownPatternGroup,
)
from registrations.pattern_groups.filtersets import PatternFilters, PatternGroupFilters
from registrations.pattern_groups.group_services import NewPatternGroup
from registrations.pattern_groups.models import PatternGroup, StoredPattern
from registrations.pattern_groups.serializers import (
    CREATED_PATTERNS,
    NEW_PATTERNS,
    NewPatternGroupSerializer,
    NewPatternSerializer,
    PatternChangeSerializer,
    PatternGroupChangeSerializer,
    PatternGroupSerializer,
    PatternSerializer,
)
from registrations.patterns.errors import PatternTooLarge
from registrations.resource import OwnedView
from registrations.scope import owner
from registrations.services import lock_owner
from registrations.temporal.errors import TemporalSyntax, TemporalTooLarge

_STREAMS = errors.UnknownStream, TransientStream, StreamDeleting, errors.Forbidden
TEXTS = (
    *(FilterSyntax, FilterTooLarge, PatternTooLarge, TemporalSyntax, TemporalTooLarge),
    *(ProgramSyntax, ProgramTooLarge),
)


class PatternView(OwnedView):
    """A view of pattern groups or patterns."""

    @contextmanager
    def changing(self) -> Iterator[Any]:
        """Lock the client as the owner, and then the row, so that changes of a client's patterns
        follow one another.
        """
        with transaction.atomic():
            lock_owner(self.get_object().client_id)
            with super().changing() as found:
                yield found


class PatternGroups(PatternView):
    """The pattern groups of a client, or of all clients of a zone. Another client's group is not
    found.
    """

    noun = "a pattern group", "pattern groups"
    kind = "pattern_group"
    unknown = UnknownPatternGroup
    lookup_url_kwarg = "pattern_group"
    queryset = PatternGroup.objects.all()
    serializer_class = PatternGroupSerializer
    filterset_class = PatternGroupFilters

    def get_queryset(self) -> QuerySet[PatternGroup]:
        return selectors.groups_of(actor=self.actor)

    def represent_items(
        self, items: Iterable[Any], serializer: Any = None
    ) -> Sequence[dict[str, Any]]:
        return super().represent_items(_with_streams(items), serializer)

    def answer(self, item: Any, status: int = 200, serializer: Any = None) -> Response:
        [named] = _with_streams([item])
        return super().answer(named, status, serializer)

    @operation(
        "Create a pattern group",
        *(PatternGroupExists, errors.LimitReached, *_STREAMS),
        body=NewPatternGroupSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> PatternGroup:
        owner = self.owner(body)
        body["streams"] = [*dict.fromkeys(body["streams"])]
        new = NewPatternGroup(**body)
        return group_services.create_pattern_group(actor=self.actor, owner=owner, new=new)

    @operation(
        "Rename a pattern group, or suspend or resume its patterns",
        PatternGroupExists,
        body=PatternGroupChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> PatternGroup:
        with self.changing() as group:
            return group_services.change_pattern_group(actor=self.actor, group=group, **body)

    @operation("Delete a pattern group with its patterns")
    def perform_destroy(self) -> None:
        with self.changing() as group:
            group_services.delete_pattern_group(actor=self.actor, group=group)


class Patterns(PatternView):
    """The patterns of a client, or of all clients of a zone. Another client's pattern is not
    found.
    """

    noun = "a pattern", "patterns"
    kind = "pattern"
    unknown = UnknownPattern
    lookup_url_kwarg = "pattern"
    parser_classes = (StrictJSONListParser,)
    queryset = StoredPattern.objects.all()
    serializer_class = PatternSerializer
    filterset_class = PatternFilters

    def get_queryset(self) -> QuerySet[StoredPattern]:
        return selectors.patterns_of(actor=self.actor)

    @operation(
        "Create a pattern, or all patterns of a list or none",
        *(*TEXTS, PatternExists, UnknownPatternGroup, errors.LimitReached, PatternsTooCostly),
        *(TooManyPatterns, UnknownSession, *_STREAMS),
        body=NEW_PATTERNS,
        response=CREATED_PATTERNS,
    )
    def create(self, request: Request, **kwargs: Any) -> Response:
        several = isinstance(request.data, list)
        try:
            bodies = _bodies(request.data if several else [request.data])
            client = owner(actor=self.actor, name=bodies[0].get("client"))
            created = services.create_patterns(
                actor=self.actor, owner=client, items=[_new(body) for body in bodies]
            )
        except errors.EventHubError as error:
            error.index = error.index if several else None
            raise
        if not several:
            return self.answer(created[0], 201, PatternSerializer)
        return Response({"items": self.represent_items(created, PatternSerializer)}, 201)

    @operation(
        "Change a pattern; the new version takes effect at one position of each stream",
        *(*TEXTS, PatternsTooCostly, UnknownSession, *_STREAMS),
        body=PatternChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> StoredPattern:
        with self.changing() as pattern:
            return services.change_pattern(actor=self.actor, pattern=pattern, changes=body)

    @operation("Delete a pattern")
    def perform_destroy(self) -> None:
        with self.changing() as pattern:
            services.delete_pattern(actor=self.actor, pattern=pattern)


def _with_streams(items: Iterable[PatternGroup]) -> list[PatternGroup]:
    """Set the names of the streams of groups."""
    items = [*items]
    names = selectors.stream_names(items)
    for group in items:
        group.stream_names = names[group.pk]
    return items


def _bodies(items: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the validated patterns of a request. Errors have the index of the pattern."""
    if not items:
        raise errors.InvalidField("The list is empty; send at least one pattern.")
    if len(items) > limits.PATTERNS_PER_REQUEST_MAX:
        raise TooManyPatterns(items_max=limits.PATTERNS_PER_REQUEST_MAX)
    found: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        body = NewPatternSerializer(data=item)
        try:
            body.is_valid(raise_exception=True)
        except ValidationError as invalid:
            error = validation_error(invalid)
            error.index = index
            raise error from None
        found.append(body.validated_data)
        if found[0].get("client") != found[-1].get("client"):
            message = "The patterns of one request belong to one client."
            raise errors.InvalidField(message, index=index, field="client")
    return found


def _new(body: dict[str, Any]) -> services.NewPattern:
    fields = {name: body[name] for name in PatternDefinition._fields if name in body}
    return services.NewPattern(body["group"], body["name"], PatternDefinition(**fields))
