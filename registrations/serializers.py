"""The shapes of the registrations' bodies and answers, as they are documented and shown.
Django module.

Bodies are read by requests.py, which is faster for lists of them.
"""

from typing import Any, get_args

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import MomentField, NameField
from eventhub.api.serializers import ChangedSerializer, Serializer
from eventhub.base import limits
from eventhub.streams.serializers import CursorSerializer
from registrations.filters.languages import LANGUAGES
from registrations.matching.cost import By

_MAYBE: dict[str, Any] = {"required": False, "allow_null": True}
_OBJECT = {"type": "object", "additionalProperties": {}}


@extend_schema_field({"oneOf": [{"type": "string"}, _OBJECT]})
class FilterField(serializers.JSONField):
    """A text, or an object where the language is of JSON."""


@extend_schema_field({"oneOf": [{"type": "array", "items": {"type": "string"}}, _OBJECT]})
class ReportField(serializers.JSONField):
    """A list of paths, or names with paths and constants."""


class LanguageSerializer(Serializer):
    name = serializers.ChoiceField(choices=list(LANGUAGES))
    about = serializers.CharField()
    example = FilterField()
    kind = serializers.ChoiceField(choices=["text", "json"])
    keys = serializers.ListField(
        source="fields",
        child=serializers.CharField(),
        help_text="At the top, in a language of JSON.",
    )


class DraftSerializer(serializers.Serializer):
    """A filter as a registration has it."""

    domain = serializers.CharField(**_MAYBE, help_text="Any, if null.")
    type = serializers.CharField(**_MAYBE, help_text="Any, if null.")
    application = serializers.CharField(**_MAYBE, help_text="One of the event's; any, if null.")
    attributes = serializers.DictField(
        **_MAYBE, help_text="Names, or dotted paths, and the values that they must have."
    )
    language = serializers.ChoiceField(
        choices=list(LANGUAGES),
        required=False,
        help_text="Of `filter`; `pairs` has fields of its own.",
    )
    filter = FilterField(**_MAYBE, help_text="What is asked for, in the language.")


class RegistrationChangeSerializer(DraftSerializer):
    """What is given is replaced; null takes a condition or the endpoint away."""

    streams = serializers.ListField(
        child=NameField(), min_length=1, max_length=limits.STREAMS_PER_REGISTRATION_MAX
    )
    endpoint = serializers.IntegerField(**_MAYBE, help_text="Where the hub calls back.")
    suspended = serializers.BooleanField(
        required=False, help_text="Nothing matches it while it is true."
    )
    group = NameField(**_MAYBE, help_text="Of the same client; none, if null.")
    report = ReportField(**_MAYBE, help_text="What of an event is told; the whole, if null.")


class NewRegistrationSerializer(RegistrationChangeSerializer):
    """What a new registration asks for."""

    callback = serializers.CharField(
        **_MAYBE,
        help_text="Instead of `endpoint`: the client's endpoint of that URL, made if needed.",
    )
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )
    key = serializers.CharField(
        **_MAYBE,
        max_length=limits.REGISTRATION_KEY_CHARS_MAX,
        help_text="The client's own name for it, unique among its live registrations. For good.",
    )


class ReachSerializer(Serializer):
    by = serializers.ChoiceField(choices=get_args(By))
    names = serializers.ListField(child=serializers.CharField())


class CostSerializer(Serializer):
    reached_by = ReachSerializer(
        many=True, help_text="Of each alternative: what an event must have for it to be looked at."
    )
    every_event = serializers.BooleanField(help_text="Some alternative is looked at for each one.")
    pairs = serializers.IntegerField(help_text="Equalities, in all alternatives.")
    tests = serializers.IntegerField(help_text="What else is tried when it is looked at.")
    budget = serializers.IntegerField(
        help_text="What is tried for every event, in units of about 2 µs: of "
        f"{limits.FILTERS_TRIED_MAX:,} that a client has on each stream."
    )


class RegistrationSerializer(ChangedSerializer, Serializer):
    """SUN-02, with `total` of SUN-08."""

    id = serializers.IntegerField(help_text="The ticket.")
    client = serializers.CharField()
    session = serializers.CharField()
    streams = serializers.ListField(child=serializers.CharField())
    domain = serializers.CharField(allow_null=True)
    type = serializers.CharField(allow_null=True)
    application = serializers.CharField(allow_null=True)
    attributes = serializers.DictField()
    language = serializers.ChoiceField(choices=list(LANGUAGES))
    filter = FilterField(allow_null=True, help_text="As it was written; null for pairs.")
    predicate = serializers.CharField(help_text="The same in predicate form.")
    warnings = serializers.ListField(
        child=serializers.ChoiceField(choices=["never_matches", "always_matches", "equal_to"]),
        help_text="What is probably a mistake.",
    )
    equal_to = serializers.IntegerField(
        allow_null=True,
        help_text="Another registration of the client that asks for the same of the same streams.",
    )
    cost = CostSerializer(help_text="What it costs whoever matches.")
    total = serializers.IntegerField(help_text="How many pairs there are in `attributes`.")
    endpoint = serializers.IntegerField(source="endpoint_id", allow_null=True)
    callback = serializers.CharField(source="url", allow_null=True, help_text="The endpoint's URL.")
    suspended = serializers.BooleanField(help_text="By itself; its group may be, too.")
    group = serializers.CharField(allow_null=True)
    report = ReportField(allow_null=True)
    key = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(
        source="number", help_text="1, and one more with each change."
    )
    created_at = MomentField(source="created_at_us")

    def get_fields(self) -> dict[str, Any]:
        """`from` is a word of Python's own."""
        text = "By stream: events after this place are matched by this version. Of a transient"
        text += " stream it is not known."
        places = serializers.DictField(child=CursorSerializer(), help_text=text)
        return {**super().get_fields(), "from": places}


class MadeRegistrationSerializer(RegistrationSerializer):
    secret = serializers.CharField(
        required=False, help_text="Of the endpoint that was made for it; shown this once."
    )


class MadeRegistrationsSerializer(serializers.Serializer):
    items = MadeRegistrationSerializer(many=True)


def _one_of(name: str, *kinds: Any) -> PolymorphicProxySerializer:
    return PolymorphicProxySerializer(
        component_name=name, serializers=kinds, resource_type_field_name=None, many=False
    )


ONE_OR_MORE = _one_of(
    "NewRegistrations", NewRegistrationSerializer, NewRegistrationSerializer(many=True)
)
MADE_ONE_OR_MORE = _one_of("MadeOneOrMore", MadeRegistrationSerializer, MadeRegistrationsSerializer)
