"""The API of replay runs. Django module."""

from typing import Any

from django.db.models import QuerySet

from delivery.errors import ReplayState, UnknownReplay
from delivery.models import ReplayRun
from delivery.recovery import replays
from delivery.recovery.filtersets import ReplayFilters
from delivery.recovery.replays import FailedRequest, LogRequest, ReplayOptions
from delivery.recovery.runs import CANCEL, PAUSE, RESUME
from delivery.recovery.serializers import (
    PreviewSerializer,
    RecoverRequestSerializer,
    ReplayRequestSerializer,
    ReplaySerializer,
)
from eventhub.access.roles import VIEWER
from eventhub.api.pagination import micros
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import EmptySerializer
from eventhub.base import errors
from eventhub.base.broker import RedisOff
from eventhub.eventlog.errors import ArchiveDamaged, ArchiveUnavailable
from eventhub.eventlog.read import Start
from eventhub.eventlog.start_positions import parse_start
from registrations.errors import TransientStream, UnknownEndpoint, UnknownRegistration
from registrations.explain.drafts import parse_draft
from registrations.filter_source import FILTER_FIELDS
from registrations.filters.errors import FilterSyntax, FilterTooLarge, UnknownLanguage
from registrations.permissions import HasListenGrant

_LOG_ERRORS = (
    *(UnknownEndpoint, UnknownRegistration, TransientStream, errors.UnknownStream),
    *(errors.SegmentMismatch, errors.Gone, errors.InvalidCursor, errors.MissingField),
    *(UnknownLanguage, FilterSyntax, FilterTooLarge),
)
_READ_ERRORS = (ArchiveUnavailable, ArchiveDamaged, errors.LogHole)


class Replays(ResourceView):
    """Replay runs."""

    noun = "a replay run", "replay runs"
    unknown = UnknownReplay
    lookup_url_kwarg = "replay"
    permission_classes = (HasListenGrant,)
    queryset = ReplayRun.objects.all()
    serializer_class = ReplaySerializer
    filterset_class = ReplayFilters
    ordering = ("-id",)

    def get_queryset(self) -> QuerySet[ReplayRun]:
        asked = self.filter_values
        return replays.list_replays(
            actor=self.actor, endpoint=asked["endpoint"], state=asked["state"]
        )

    def filter_queryset(self, queryset: Any) -> Any:
        return queryset  # already filtered

    def get_object(self) -> ReplayRun:
        return replays.find_replay(actor=self.actor, id=self.key)

    @operation(
        "Send events of the log to an endpoint, as a background run",
        *(*_LOG_ERRORS, errors.LimitReached, RedisOff),
        body=ReplayRequestSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> ReplayRun:
        endpoint, request, options = self.asked(body)
        return replays.create_replay(
            actor=self.actor, endpoint_id=endpoint, request=request, options=options
        )

    def asked(self, body: dict[str, Any]) -> tuple[int, LogRequest, ReplayOptions]:
        """Return the endpoint, what is replayed, and how."""
        given = {name: self.request.data[name] for name in FILTER_FIELDS if name in body}
        filter = parse_draft(given).filter if given else None
        start, end = _position(body, "from") or "oldest", _position(body, "to")
        names = ("streams", "registration", "version")
        request = LogRequest(
            start=start, end=end, filter=filter, **{name: body.get(name) for name in names}
        )
        return body["endpoint"], request, _options(body)


class ReplayPreview(Replays):
    """The preview of a replay run."""

    @operation(
        "Preview a replay: how many deliveries, which, and how long it would take",
        *(*_LOG_ERRORS, *_READ_ERRORS, errors.TooManyRequests),
        body=ReplayRequestSerializer,
        response=PreviewSerializer,
        status=200,
        role=VIEWER,
    )
    def perform_create(self, body: dict[str, Any]) -> Any:
        endpoint, request, options = self.asked(body)
        return replays.preview_replay(
            actor=self.actor, endpoint_id=endpoint, request=request, options=options
        )


class Recovery(ResourceView):
    """The recovery of an endpoint."""

    unknown = UnknownEndpoint
    lookup_url_kwarg = "endpoint"
    permission_classes = (HasListenGrant,)
    serializer_class = ReplaySerializer

    @operation(
        "Send the failed deliveries of an endpoint again, as a background run",
        *(errors.UnknownStream, errors.LimitReached, RedisOff),
        body=RecoverRequestSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> ReplayRun:
        return replays.create_replay(
            actor=self.actor, endpoint_id=self.key, request=_failed(body), options=_options(body)
        )


class RecoveryPreview(Recovery):
    """The preview of a recovery."""

    @operation(
        "Preview the recovery of an endpoint",
        *(errors.UnknownStream, errors.TooManyRequests),
        body=RecoverRequestSerializer,
        response=PreviewSerializer,
        status=200,
        role=VIEWER,
    )
    def perform_create(self, body: dict[str, Any]) -> Any:
        return replays.preview_replay(
            actor=self.actor, endpoint_id=self.key, request=_failed(body), options=_options(body)
        )


class ReplayPause(Replays):
    """Pauses a run."""

    @operation("Pause a replay run", ReplayState, body=EmptySerializer, status=200)
    def perform_create(self, body: dict[str, Any]) -> ReplayRun:
        return replays.change_replay(actor=self.actor, id=self.key, action=PAUSE)


class ReplayResume(Replays):
    """Resumes a run."""

    @operation("Resume a paused replay run", ReplayState, body=EmptySerializer, status=200)
    def perform_create(self, body: dict[str, Any]) -> ReplayRun:
        return replays.change_replay(actor=self.actor, id=self.key, action=RESUME)


class ReplayCancel(Replays):
    """Cancels a run."""

    @operation(
        "Cancel a replay run; what it has sent stays sent",
        ReplayState,
        body=EmptySerializer,
        status=200,
    )
    def perform_create(self, body: dict[str, Any]) -> ReplayRun:
        return replays.change_replay(actor=self.actor, id=self.key, action=CANCEL)


def _failed(body: dict[str, Any]) -> FailedRequest:
    return FailedRequest(
        tuple(dict.fromkeys(body["states"])),
        since_us=micros(body["since"]) if "since" in body else 0,
        until_us=micros(body["until"]) if "until" in body else None,
        outcome=body.get("outcome"),
        status=body.get("status"),
        streams=body.get("streams"),
    )


def _options(body: dict[str, Any]) -> ReplayOptions:
    return ReplayOptions(
        body["rate"], body.get("limit"), force=body.get("force", False), new_id=body["new_id"]
    )


def _position(body: dict[str, Any], name: str) -> Start | None:
    """Parse `from` or `to`. Raises InvalidCursor, InvalidField."""
    text = body.get(name)
    if text is None:
        return None
    try:
        found = parse_start(text)
    except errors.InvalidCursor as error:
        error.field = name
        raise
    if found in ("now", "boot") or (name == "to" and isinstance(found, str)):
        raise errors.InvalidField("A range is between cursors or times.", field=name)
    return found
