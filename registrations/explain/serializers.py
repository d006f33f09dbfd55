"""The shapes of checks and explanations, as they are documented. Bodies are read by drafts.py.
Django module.
"""

from typing import Any, get_args

from rest_framework import serializers

from eventhub.api.fields import MomentField, NameField, ObjectField
from eventhub.api.serializers import Serializer
from eventhub.streams.serializers import CursorSerializer
from registrations.explain.conditions import ConditionName
from registrations.filters.languages import LANGUAGES
from registrations.serializers import CostSerializer, DraftSerializer, FilterField


class CheckRequestSerializer(DraftSerializer):
    streams = serializers.ListField(
        child=NameField(), required=False, help_text="Are they there, and may you listen to them?"
    )
    client = NameField(
        required=False, help_text="Whose it would be, for `equal_to`; a key's own if not given."
    )


class CheckSerializer(Serializer):
    language = serializers.CharField(allow_null=True)
    predicate = serializers.CharField(allow_null=True, help_text="Null if there is a mistake.")
    variable = serializers.CharField(
        allow_null=True, help_text="The name that a READY filter gives the event."
    )
    warnings = serializers.ListField(
        child=serializers.ChoiceField(choices=["never_matches", "always_matches", "equal_to"])
    )
    cost = CostSerializer(allow_null=True)
    equal_to = serializers.IntegerField(
        allow_null=True,
        help_text="The client's registration that asks for the same of these `streams`.",
    )
    mistake = ObjectField(
        allow_null=True,
        help_text="As registering would refuse it: a problem, with `line` and `column`.",
    )


class ExplainRequestSerializer(DraftSerializer):
    event = ObjectField(required=False, help_text="As it would be emitted.")
    stream = NameField(required=False, help_text="Or an event of this stream, ...")
    sequence = serializers.IntegerField(required=False, help_text="... by its number.")
    mask = serializers.CharField(required=False, help_text="As a listen has it.")
    channels = serializers.ListField(child=serializers.CharField(), required=False)


class EvaluatedValueSerializer(Serializer):
    path = serializers.CharField()
    kind = serializers.ChoiceField(
        choices=["missing", "null", "boolean", "integer", "number", "text", "list", "object"]
    )
    values = serializers.ListField(help_text="What is compared, cut to what can be shown.")
    more = serializers.IntegerField(help_text="So many are left out.")


class PartSerializer(Serializer):
    """A part of a filter; its own parts are of the same shape."""

    op = serializers.CharField(help_text="`and`, `or`, `not`, `=`, `prefix`, `type`, ...")
    predicate = serializers.CharField()
    line = serializers.IntegerField(allow_null=True, help_text="In the text as it was written.")
    column = serializers.IntegerField(allow_null=True)
    held = serializers.BooleanField()
    decides = serializers.BooleanField(help_text="The answer for the whole hangs on it.")
    why = serializers.CharField(help_text="In words.")
    evaluated = EvaluatedValueSerializer(many=True)
    parts = serializers.ListField(child=ObjectField())


class ConditionSerializer(Serializer):
    name = serializers.ChoiceField(choices=get_args(ConditionName))
    held = serializers.BooleanField()
    why = serializers.CharField()


class StoredPlaceSerializer(CursorSerializer):
    stream = serializers.CharField()
    appended_at = MomentField()


class ExplanationSerializer(Serializer):
    matches = serializers.BooleanField(help_text="The filter holds, and all conditions.")
    held = serializers.BooleanField(help_text="What the filter says.")
    language = serializers.ChoiceField(choices=list(LANGUAGES))
    filter = FilterField(allow_null=True, help_text="As it was written; null for pairs.")
    tree = PartSerializer()
    conditions = ConditionSerializer(many=True, help_text="What else has a say.")
    event = StoredPlaceSerializer(allow_null=True, help_text="Null if it is not stored.")


class ExplainedVersionSerializer(Serializer):
    id = serializers.IntegerField()
    client = serializers.CharField()
    version = serializers.IntegerField(help_text="That held for the event, else the current one.")
    current = serializers.BooleanField()
    endpoint = serializers.IntegerField(allow_null=True)
    group = serializers.CharField(allow_null=True)
    until = serializers.IntegerField(allow_null=True, help_text="The last sequence it matches.")

    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of Python's own."""
        since = serializers.IntegerField(help_text="It matches what comes after this sequence.")
        return {**super().get_fields(), "from": since}


class RegistrationExplanationSerializer(ExplanationSerializer):
    registration = ExplainedVersionSerializer()
