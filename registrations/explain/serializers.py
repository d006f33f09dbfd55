"""The serializers of checks and explanations, for documentation; drafts.py parses the bodies.
Django module.
"""

from typing import Any, get_args

from rest_framework import serializers

from eventhub.api.fields import MomentField, NameField, ObjectField
from eventhub.api.serializers import Serializer
from eventhub.streams.serializers import CursorSerializer
from registrations.explain.conditions import ConditionName
from registrations.filter_source import Warned
from registrations.filters.languages import LANGUAGES
from registrations.serializers import (
    SIGNATURE_HELP,
    CostSerializer,
    DraftSerializer,
    FilterField,
)


class CheckRequestSerializer(DraftSerializer):
    streams = serializers.ListField(
        child=NameField(),
        required=False,
        help_text="Also check that they exist and you may listen to them.",
    )
    client = NameField(
        required=False, help_text="The owner, for `equal_to`; by default the key's own client."
    )


class CheckSerializer(Serializer):
    language = serializers.CharField(allow_null=True)
    predicate = serializers.CharField(allow_null=True, help_text="Null if there is a mistake.")
    variable = serializers.CharField(
        allow_null=True, help_text="The variable that a READY filter binds to the event."
    )
    ready = serializers.CharField(
        allow_null=True, help_text="The filter in READY's form; null if READY cannot express it."
    )
    warnings = serializers.ListField(
        child=serializers.ChoiceField(choices=get_args(Warned)), help_text="Probable mistakes."
    )
    cost = CostSerializer(allow_null=True)
    signature = serializers.ListField(child=serializers.CharField(), help_text=SIGNATURE_HELP)
    equal_to = serializers.IntegerField(
        allow_null=True,
        help_text="The client's registration with these `streams` and an equal filter.",
    )
    mistake = ObjectField(
        allow_null=True,
        help_text="The problem that registering would answer with, with `line` and `column`.",
    )


class ExplainRequestSerializer(DraftSerializer):
    event = ObjectField(required=False, help_text="An event as it would be emitted.")
    stream = NameField(required=False, help_text="Alternatively, the stream of a stored event.")
    sequence = serializers.IntegerField(required=False, help_text="The sequence of a stored event.")
    mask = serializers.CharField(required=False, help_text="The channel mask of a listener.")
    channels = serializers.ListField(child=serializers.CharField(), required=False)


class EvaluatedValueSerializer(Serializer):
    path = serializers.CharField()
    kind = serializers.ChoiceField(
        choices=["missing", "null", "boolean", "integer", "number", "text", "list", "object"]
    )
    values = serializers.ListField(help_text="The compared values, shortened.")
    more = serializers.IntegerField(help_text="Number of omitted values.")


class PartSerializer(Serializer):
    """A part of a filter; its own parts have the same form."""

    op = serializers.CharField(help_text="`and`, `or`, `not`, `=`, `prefix`, `type`, ...")
    predicate = serializers.CharField()
    line = serializers.IntegerField(allow_null=True, help_text="In the text of the filter.")
    column = serializers.IntegerField(allow_null=True)
    held = serializers.BooleanField()
    decides = serializers.BooleanField(help_text="The result of the whole filter depends on it.")
    why = serializers.CharField(help_text="The reason in words.")
    evaluated = EvaluatedValueSerializer(many=True)
    parts = serializers.ListField(child=ObjectField())


class ConditionSerializer(Serializer):
    name = serializers.ChoiceField(choices=get_args(ConditionName))
    held = serializers.BooleanField()
    why = serializers.CharField()


class StoredPositionSerializer(CursorSerializer):
    stream = serializers.CharField()
    appended_at = MomentField()


class ExplanationSerializer(Serializer):
    matches = serializers.BooleanField(help_text="The filter and all conditions hold.")
    held = serializers.BooleanField(help_text="The filter holds.")
    language = serializers.ChoiceField(choices=list(LANGUAGES))
    filter = FilterField(allow_null=True, help_text="As it was written; null for pairs.")
    tree = PartSerializer()
    conditions = ConditionSerializer(many=True, help_text="Conditions in addition to the filter.")
    event = StoredPositionSerializer(allow_null=True, help_text="Null if it is not stored.")


class ExplainedVersionSerializer(Serializer):
    id = serializers.IntegerField()
    client = serializers.CharField()
    version = serializers.IntegerField(
        help_text="The version that applied to the event, else the current one."
    )
    current = serializers.BooleanField()
    endpoint = serializers.IntegerField(allow_null=True)
    group = serializers.CharField(allow_null=True)
    until = serializers.IntegerField(allow_null=True, help_text="The last sequence it matches.")

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, a keyword of Python."""
        since = serializers.IntegerField(help_text="It matches events after this sequence.")
        return {**super().get_fields(), "from": since}


class RegistrationExplanationSerializer(ExplanationSerializer):
    registration = ExplainedVersionSerializer()
