"""The API of a stream's match index: its status, and requests for builds. Django module."""

from typing import Any, get_args

from rest_framework import serializers

from eventhub.api.fields import MomentField
from eventhub.api.permissions import ManagesStream
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import Serializer
from eventhub.base import errors, limits
from eventhub.base.broker import RedisOff
from registrations.errors import NothingToIndex
from registrations.match_index.builds import services
from registrations.match_index.builds.statements import BuildState
from registrations.match_index.builds.status import IndexStatus


class IndexEpochSerializer(Serializer):
    """The index in use."""

    epoch = serializers.IntegerField(help_text="From 1 on; each build increments it.")
    registrations = serializers.IntegerField(
        source="ids", help_text="Versions of registrations in the index."
    )
    entries = serializers.IntegerField(
        help_text="Conjunctions; a filter with alternatives has several."
    )
    bytes = serializers.IntegerField(help_text="Size on disk.")
    built_at = MomentField(allow_null=True, help_text="null: just now.")
    built_through_sequence = serializers.IntegerField(
        help_text="The index has all changes up to this sequence of `system`."
    )


class IndexBuildSerializer(Serializer):
    """The last build, or a requested one."""

    state = serializers.ChoiceField(
        choices=get_args(BuildState),
        help_text="`waiting` for a worker; `interrupted`: its builder stopped sending heartbeats,"
        " and another one will retry.",
    )
    requested_at = MomentField(
        source="requested_at_us", allow_null=True, help_text="null: no further build is requested."
    )
    started_at = MomentField(source="started_at_us", allow_null=True)
    ended_at = MomentField(source="ended_at_us", allow_null=True)
    stage = serializers.CharField(help_text="The builder's last step; empty if it is not running.")
    done = serializers.IntegerField(
        help_text="In the stage `read`, versions of registrations; in later ones, entries."
    )
    expected = serializers.IntegerField(
        allow_null=True, help_text="The approximate number of versions to read."
    )
    reason = serializers.CharField(help_text="The error code of a failed build.")
    detail = serializers.CharField(help_text="The error message of a failed build.")


class MatchIndexSerializer(Serializer):
    stream = serializers.CharField(source="stream.name")
    matching = serializers.CharField(
        source="stream.matching", help_text="The strategy of the stream's policy."
    )
    index = IndexEpochSerializer(
        source="in_use", allow_null=True, help_text="null: there is no usable index."
    )
    changed_since = serializers.IntegerField(
        source="state.changed_since",
        help_text="Versions of registrations that started or ended since; without an index, all."
        " They are counted up to where a build is due.",
    )
    due = serializers.BooleanField(source="state.due", help_text="A worker will build it soon.")
    why = serializers.CharField(help_text="The reason why a build is due or not.")
    buildable = serializers.BooleanField(
        help_text="Whether a build may be requested; if not, `why` has the reason."
    )
    builds_from = serializers.IntegerField(
        help_text=f"With the strategy `auto` an index is built from this number of versions of"
        f" registrations on: {limits.INDEX_AUTO_MIN:,}."
    )
    build = IndexBuildSerializer(allow_null=True, help_text="null: no build is recorded.")


class NoFieldsSerializer(Serializer):
    """An empty body."""


class MatchIndex(ResourceView):
    """The match index of a stream, for its managers."""

    unknown = errors.UnknownStream
    permission_classes = (ManagesStream,)
    serializer_class = MatchIndexSerializer

    @operation("Show a stream's match index")
    def get_object(self) -> IndexStatus:
        return services.find_status(actor=self.actor, stream=self.kwargs["stream"])

    @operation(
        "Request a build of a stream's match index by a worker",
        NothingToIndex,
        RedisOff,
        body=NoFieldsSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> IndexStatus:
        return services.request_build(actor=self.actor, stream=self.kwargs["stream"])
