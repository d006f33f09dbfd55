"""Serializers of pattern groups and patterns. Django module."""

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from eventhub.api.fields import FlagField, NameField, ObjectField, OneOfField, TextField
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.base import limits
from registrations.pattern_groups.definition import LANGUAGES
from registrations.pattern_groups.models import PatternGroup, PatternStatus, StoredPattern

_ONCE = "It ends with its first match. A pattern in READY may also say so in its text."
_RECENT = (
    "It also sees the most recent events that its group has consumed. Only in `temporal` and"
    " `agent`."
)
_SUSPENDED = "While it is true, the pattern sees no event, and it has no partial matches."
_TEXT = "The pattern, written in `language`."


class PatternGroupChangeSerializer(Serializer):
    name = NameField(required=False, help_text="Unique among the client's pattern groups.")
    suspended = FlagField(
        required=False,
        help_text="Suspends, or resumes, all patterns that the group has now and that have not"
        " ended.",
    )


class NewPatternGroupSerializer(Serializer):
    name = NameField(help_text="Unique among the client's pattern groups.")
    streams = serializers.ListField(
        child=NameField(),
        min_length=1,
        max_length=limits.PATTERN_GROUP_STREAMS_MAX,
        help_text="The streams that the patterns see. Immutable.",
    )
    output_stream = NameField(
        required=False,
        help_text="The stream of the outputs; by default that of the event which completed the"
        " match. Immutable.",
    )
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )


class PatternGroupSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    streams = serializers.ListField(child=serializers.CharField(), source="stream_names")
    output_stream = serializers.CharField(
        source="output_stream_name",
        allow_null=True,
        help_text="null: that of the event which completed the match.",
    )
    patterns = serializers.IntegerField(help_text="Number of patterns.")
    suspended_patterns = serializers.IntegerField(
        help_text="Number of those that a request suspended."
    )
    consumed = serializers.IntegerField(help_text="Number of events that the group has consumed.")

    class Meta:
        model = PatternGroup
        fields = (
            *("id", "client", "name", "streams", "output_stream", "patterns"),
            *("suspended_patterns", "consumed", "created_at", "changed"),
        )


class PatternChangeSerializer(Serializer):
    text = TextField(required=False, help_text=_TEXT)
    once = FlagField(required=False, help_text=_ONCE)
    recent = FlagField(required=False, help_text=_RECENT)
    suspended = FlagField(required=False, help_text=_SUSPENDED)


class NewPatternSerializer(PatternChangeSerializer):
    group = NameField(help_text="A pattern group of the client.")
    name = NameField(help_text="Unique in the group.")
    language = OneOfField(choices=LANGUAGES, help_text="The language of the text.")
    text = TextField(help_text=_TEXT)
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )


class PatternSerializer(ChangedSerializer, AnswerSerializer):
    client = serializers.CharField(source="client_name")
    group = serializers.CharField(source="group_name")
    version = serializers.IntegerField(help_text="1, 2, 3, ...; each change is a version.")
    language = OneOfField(choices=LANGUAGES)
    text = serializers.CharField(help_text=_TEXT)
    once = serializers.BooleanField(help_text=_ONCE)
    recent = serializers.BooleanField(help_text=_RECENT)
    suspended = serializers.BooleanField(source="is_suspended", help_text=_SUSPENDED)
    status = OneOfField(
        source="state",
        choices=PatternStatus.State.values,
        help_text="`ended`: it was to match once, and has; `suspended`: by a request, or by the hub"
        " (`fault`).",
    )
    fault = ObjectField(
        allow_null=True,
        help_text="Why the hub suspended an agent: `code`, `message`, and the event's `position`.",
    )
    matches = serializers.IntegerField(help_text="Number of matches, of all versions.")
    dropped = ObjectField(
        help_text="Number of discarded partial matches and outputs by reason, of all versions."
    )

    class Meta:
        model = StoredPattern
        fields = (
            *("id", "client", "group", "name", "version", "language", "text", "once", "recent"),
            *("suspended", "status", "fault", "matches", "dropped", "created_at", "changed"),
        )


class CreatedPatternsSerializer(Serializer):
    """The patterns of a list, in its order."""

    items = PatternSerializer(many=True)


NEW_PATTERNS = PolymorphicProxySerializer(
    component_name="NewPatterns",
    serializers=[NewPatternSerializer, NewPatternSerializer(many=True)],
    resource_type_field_name=None,
    many=False,
)
CREATED_PATTERNS = PolymorphicProxySerializer(
    component_name="CreatedPatternOrPatterns",
    serializers=[PatternSerializer, CreatedPatternsSerializer],
    resource_type_field_name=None,
    many=False,
)
