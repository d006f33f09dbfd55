"""Serializers of pattern groups and patterns. Django module."""

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from eventhub.api.fields import FlagField, NameField, ObjectField, OneOfField, TextField, WholeField
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.base import limits
from registrations.pattern_groups.checked import WARNINGS
from registrations.pattern_groups.definition import LANGUAGES
from registrations.pattern_groups.models import PatternGroup, StoredPattern
from registrations.pattern_groups.selectors import STATES

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
    fault = ObjectField(
        allow_null=True,
        help_text="Why the group has stopped, and what to do: `code`, `message`. null: it runs.",
    )

    class Meta:
        model = PatternGroup
        fields = (
            *("id", "client", "name", "streams", "output_stream", "patterns"),
            *("suspended_patterns", "consumed", "fault", "created_at", "changed"),
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
        choices=STATES,
        help_text="`ended`: it was to match once, and has; `suspended`: by a request, or by the hub"
        " (`fault`); `stopped`: its group has stopped (`fault`).",
    )
    fault = ObjectField(
        allow_null=True,
        help_text="Why the hub suspended an agent: `code`, `message`, and the event's `position`;"
        " or why the group has stopped.",
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


class PatternTextSerializer(Serializer):
    language = OneOfField(choices=LANGUAGES, help_text="The language of the text.")
    text = TextField(help_text=_TEXT)
    once = FlagField(required=False, help_text=_ONCE)


class PatternCheckRequestSerializer(PatternTextSerializer):
    recent = FlagField(required=False, help_text=_RECENT)


class PatternCostSerializer(Serializer):
    filters = serializers.IntegerField(help_text="Number of distinct filters.")
    every_event_cost = serializers.IntegerField(
        help_text="Cost for every event, of which a group has"
        f" {limits.FILTERS_TRIED_MAX:,} units of about 2 µs."
    )


class PatternElementSerializer(Serializer):
    variable = serializers.CharField(allow_null=True)
    text = serializers.CharField()
    every_event_cost = serializers.IntegerField()


class PatternWindowSerializer(Serializer):
    """How far back a match may reach."""

    within_s = serializers.FloatField(allow_null=True, help_text="null: not by time.")
    last = serializers.IntegerField(help_text="Number of events.")


class PatternCheckSerializer(Serializer):
    language = OneOfField(choices=LANGUAGES)
    printed = serializers.CharField(allow_null=True, help_text="The text as the hub reads it.")
    tree = ObjectField(
        allow_null=True, help_text="The parts of the pattern: `text`, and their own `parts`."
    )
    elements = PatternElementSerializer(many=True)
    window = PatternWindowSerializer(allow_null=True)
    cost = PatternCostSerializer(allow_null=True)
    streams = serializers.ListField(
        child=serializers.CharField(), help_text="Those that it announces into by name."
    )
    sessions = serializers.ListField(
        child=serializers.CharField(), help_text="Those that it notifies by name."
    )
    warnings = serializers.ListField(child=OneOfField(choices=WARNINGS))
    mistake = ObjectField(
        allow_null=True,
        help_text="The problem that creating it would answer with, with `line` and `column`.",
    )


class PatternDryRunRequestSerializer(PatternTextSerializer):
    events = serializers.ListField(
        child=serializers.JSONField(),
        required=False,
        max_length=limits.PATTERN_DRY_RUN_EVENTS_MAX,
        help_text="Events as the emit route takes them. The `time` of one counts as that of its"
        " append; without it, it follows the previous one by a second.",
    )
    stream = NameField(required=False, help_text="Instead of `events`: those of this stream.")
    after = WholeField(
        required=False, min_value=0, help_text="Those after this sequence; by default the last."
    )
    count = WholeField(
        required=False,
        min_value=1,
        max_value=limits.PATTERN_DRY_RUN_EVENTS_MAX,
        help_text=f"How many; by default {limits.PATTERN_DRY_RUN_EVENTS_DEFAULT}.",
    )


class PatternStepSerializer(Serializer):
    event = ObjectField(help_text="The event, with its `order` in the dry run.")
    key = serializers.JSONField(allow_null=True, help_text="The event's key; null: none.")
    outputs = serializers.ListField(
        child=ObjectField(),
        help_text="`output` is match, notify, announce, dropped, ended, failed or suspended.",
    )
    tree = ObjectField(
        allow_null=True,
        help_text="The parts of the pattern after the event, for its key: `element`, `status`"
        " (inactive, waiting, matched, failed), `since`, `expires_at`, `bound`, `children`. null:"
        " nothing is bound.",
    )


class PatternDryRunSerializer(Serializer):
    steps = PatternStepSerializer(many=True)
    matches = serializers.IntegerField()
    is_complete = serializers.BooleanField(help_text="False: the time of a dry run was over.")


class PatternPartitionSerializer(Serializer):
    key = serializers.JSONField(allow_null=True, help_text="null: the pattern has no partitions.")
    tree = ObjectField(
        help_text="The parts of the pattern, as in a dry run: `element`, `status`, `since`,"
        " `expires_at`, `bound`, `children`."
    )


class PatternWaitingSerializer(Serializer):
    pattern = serializers.IntegerField()
    version = serializers.IntegerField()
    status = OneOfField(choices=STATES)
    consumed = serializers.IntegerField(
        help_text="Number of events that the group had consumed at its last checkpoint."
    )
    partitions = PatternPartitionSerializer(many=True, help_text="Those with partial matches.")
    is_complete = serializers.BooleanField(
        help_text=f"False: there are more than {limits.PATTERN_WAITING_KEYS_MAX}."
    )


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
