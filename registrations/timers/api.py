"""The API of timers and delayed emits. Django module."""

from typing import Any

from django.db.models import QuerySet

from eventhub.access.names import valid_name
from eventhub.access.quotas import RateLimited, ZoneStorageFull
from eventhub.api.permissions import IsAuthenticated
from eventhub.api.resource import operation, parse_number
from eventhub.base import errors
from eventhub.event.errors import ImmutableProperty
from eventhub.eventlog.errors import StreamDeleting
from eventhub.types.errors import TypeTooCostly, TypeViolation, UndeclaredType
from registrations.errors import UnknownRegistration
from registrations.resource import OwnedView
from registrations.timers import selectors, services
from registrations.timers.errors import TimerEnded, TimerExists, UnknownTimer
from registrations.timers.filtersets import TimerFilters
from registrations.timers.models import Timer
from registrations.timers.serializers import (
    NewTimerSerializer,
    TimerChangeSerializer,
    TimerSerializer,
)

_EMITS = (
    *(errors.UnknownStream, errors.UnknownChannel, errors.InvalidMask, errors.EventTooLarge),
    *(TypeViolation, TypeTooCostly, UndeclaredType, ImmutableProperty),
    *(RateLimited, ZoneStorageFull, StreamDeleting),
)


class Timers(OwnedView):
    """The timers of a client on streams that the key may emit to, or of all clients of a zone.
    Another client's timer is not found.
    """

    noun = "a timer", "timers"
    unknown = UnknownTimer
    lookup_url_kwarg = "timer"
    permission_classes = (IsAuthenticated,)
    queryset = Timer.objects.all()
    serializer_class = TimerSerializer
    filterset_class = TimerFilters

    def get_queryset(self) -> QuerySet[Timer]:
        return selectors.timers_of(actor=self.actor)

    @operation(
        "Create a timer; with an `event`, it is emitted at that time",
        *(TimerExists, UnknownRegistration, errors.LimitReached, errors.MissingField, *_EMITS),
        body=NewTimerSerializer,
    )
    def perform_create(self, body: dict[str, Any]) -> Timer:
        return services.create_timer(actor=self.actor, owner=self.owner(body), fields=body)

    @operation("Suspend or resume a timer", TimerEnded, body=TimerChangeSerializer)
    def perform_partial_update(self, body: dict[str, Any]) -> Timer:
        with self.changing() as timer:
            return services.change_timer(actor=self.actor, timer=timer, **body)

    @operation("Delete a timer")
    def perform_destroy(self) -> None:
        with self.changing() as timer:
            services.delete_timer(actor=self.actor, timer=timer)


class RegistrationTimers(Timers):
    """A timer by the handle that it has among those of its registration."""  # RDY-42

    noun = "a timer of a registration", "timers of a registration"
    lookup_field = lookup_url_kwarg = "handle"

    @property
    def key(self) -> str:
        """The handle in the path. Raises FieldTooLong, InvalidName."""
        return valid_name(self.kwargs["handle"], field="handle")

    def get_queryset(self) -> QuerySet[Timer]:
        unknown = UnknownRegistration(field="registration")
        registration = parse_number(self.kwargs["registration"], error=unknown)
        return super().get_queryset().filter(registration_id=registration)

    @operation("Show a timer of a registration", UnknownRegistration)
    def get_object(self) -> Timer:
        found: Timer = super().get_object()
        return found

    @operation(
        "Suspend or resume a timer of a registration",
        *(TimerEnded, UnknownRegistration),
        body=TimerChangeSerializer,
    )
    def perform_partial_update(self, body: dict[str, Any]) -> Timer:
        return super().perform_partial_update(body)

    @operation("Delete a timer of a registration", UnknownRegistration)
    def perform_destroy(self) -> None:
        super().perform_destroy()
