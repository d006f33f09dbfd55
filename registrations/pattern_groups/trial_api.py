"""The API of checks and dry runs of patterns, and of their partial matches: nothing is stored.
Django module.
"""

from typing import Any

from eventhub.access.roles import VIEWER
from eventhub.api.permissions import IsAuthenticated
from eventhub.api.resource import ResourceView, operation
from eventhub.base import errors
from registrations.errors import TransientStream
from registrations.pattern_groups import trial_selectors, waiting_selectors
from registrations.pattern_groups.api import TEXTS, Patterns
from registrations.pattern_groups.errors import StateUnavailable
from registrations.pattern_groups.serializers import (
    PatternCheckRequestSerializer,
    PatternCheckSerializer,
    PatternDryRunRequestSerializer,
    PatternDryRunSerializer,
    PatternWaitingSerializer,
)


class WaitingPattern(Patterns):
    """The partial matches of a pattern."""

    noun = "what a pattern waits for", "patterns"
    kind = ""
    serializer_class = PatternWaitingSerializer

    @operation(
        "Show the partial matches of a pattern: what is bound, and what it waits for",
        *(StateUnavailable, errors.Forbidden),
    )
    def get_object(self) -> dict[str, Any]:
        found = super().get_object()
        return waiting_selectors.waiting_of(actor=self.actor, pattern=found)


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
