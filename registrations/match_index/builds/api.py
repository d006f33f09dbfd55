"""A stream's match index: how it stands, and that it is built now. Django module."""

from typing import Any, get_args

from rest_framework import serializers

from eventhub.api.fields import MomentField
from eventhub.api.permissions import ManagesStream
from eventhub.api.resource import ResourceView, operation
from eventhub.api.serializers import Serializer
from eventhub.base import errors, limits
from eventhub.base.task_requests import RedisOff
from registrations.errors import NothingToIndex
from registrations.match_index.builds import services
from registrations.match_index.builds.rows import BuildState
from registrations.match_index.builds.status import Standing


class IndexEpochSerializer(Serializer):
    """The index that is in force."""

    epoch = serializers.IntegerField(help_text="From 1 on; each build is the next one.")
    registrations = serializers.IntegerField(
        source="ids", help_text="Versions of registrations in it."
    )
    entries = serializers.IntegerField(
        help_text="Conjunctions; a filter with alternatives has several."
    )
    bytes = serializers.IntegerField(help_text="On the disk.")
    built_at = MomentField(allow_null=True, help_text="null: just now.")
    built_through_sequence = serializers.IntegerField(
        help_text="Of `system`: what changed at or before it is in the index."
    )


class IndexBuildSerializer(Serializer):
    """The last build, or that one is waited for."""

    state = serializers.ChoiceField(
        choices=get_args(BuildState),
        help_text="`waiting` for a worker; `interrupted`: its builder has gone without a word, and"
        " another one will try again.",
    )
    requested_at = MomentField(
        source="requested_at_us", allow_null=True, help_text="null: nobody waits for another one."
    )
    started_at = MomentField(source="started_at_us", allow_null=True)
    ended_at = MomentField(source="ended_at_us", allow_null=True)
    stage = serializers.CharField(
        help_text="What the builder did last; empty if it is not at work."
    )
    done = serializers.IntegerField(
        help_text="Of the stage `read`, versions of registrations; of later ones, entries."
    )
    expected = serializers.IntegerField(
        allow_null=True, help_text="About how many versions there are to read."
    )
    reason = serializers.CharField(help_text="Of one that failed: an error's code.")
    detail = serializers.CharField(help_text="The same in words.")


class MatchIndexSerializer(Serializer):
    stream = serializers.CharField(source="stream.name")
    matching = serializers.CharField(
        source="stream.matching", help_text="The strategy of the stream's policy."
    )
    index = IndexEpochSerializer(
        source="in_force", allow_null=True, help_text="null: there is none that can be used."
    )
    changed_since = serializers.IntegerField(
        source="state.changed_since",
        help_text="Versions of registrations that began or ended since; without an index, all."
        " They are counted up to where a build is due.",
    )
    due = serializers.BooleanField(
        source="state.due", help_text="A worker builds it by itself, soon."
    )
    why = serializers.CharField(help_text="Why it is due or not, in words.")
    buildable = serializers.BooleanField(
        help_text="Whether a build may be asked for; if not, `why` says why."
    )
    builds_from = serializers.IntegerField(
        help_text=f"Versions of registrations from which on the strategy `auto` has an index:"
        f" {limits.INDEX_AUTO_MIN:,}."
    )
    build = IndexBuildSerializer(allow_null=True, help_text="null: none is known of.")


class NoFieldsSerializer(Serializer):
    """Nothing is to be said."""


class MatchIndex(ResourceView):
    """The match index of a stream; for who may manage it."""

    unknown = errors.UnknownStream
    permission_classes = (ManagesStream,)
    serializer_class = MatchIndexSerializer

    @operation("Show a stream's match index")
    def get_object(self) -> Standing:
        return services.find_standing(actor=self.actor, stream=self.kwargs["stream"])

    @operation(
        "Build a stream's match index now; a worker does it",
        NothingToIndex,
        RedisOff,
        body=NoFieldsSerializer,
        status=202,
    )
    def perform_create(self, body: dict[str, Any]) -> Standing:
        return services.ask_build(actor=self.actor, stream=self.kwargs["stream"])
