"""The API of checks and dry runs of patterns, which store nothing. Django module."""

from typing import Any

from eventhub.access.roles import VIEWER
from eventhub.api.permissions import IsAuthenticated
from eventhub.api.resource import ResourceView, operation
from eventhub.base import errors
from registrations.errors import TransientStream
from registrations.pattern_groups import trial_selectors
from registrations.pattern_groups.api import TEXTS
from registrations.pattern_groups.serializers import (
    PatternCheckRequestSerializer,
    PatternCheckSerializer,
    PatternDryRunRequestSerializer,
    PatternDryRunSerializer,
)


class PatternCheck(ResourceView):
    """The check of a pattern, for editors."""

    permission_classes = (IsAuthenticated,)
    serializer_class = PatternCheckSerializer

    @operation(
        "Check a pattern; nothing is created",
        body=PatternCheckRequestSerializer,
        status=200,
        role=VIEWER,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, Any]:
        return trial_selectors.check(**body)


class PatternDryRun(ResourceView):
    """The dry run of a pattern over given or stored events."""

    permission_classes = (IsAuthenticated,)
    serializer_class = PatternDryRunSerializer

    @operation(
        "Try a pattern on events; nothing is stored",
        *(*TEXTS, errors.UnknownStream, errors.UnknownChannel, errors.InvalidMask),
        *(errors.EventTooLarge, TransientStream, errors.LogHole, errors.Forbidden),
        body=PatternDryRunRequestSerializer,
        status=200,
        role=VIEWER,
    )
    def perform_create(self, body: dict[str, Any]) -> dict[str, Any]:
        return trial_selectors.dry_run(actor=self.actor, body=body)
