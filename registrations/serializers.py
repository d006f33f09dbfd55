"""The serializers of registrations: answers, and the documentation of request bodies, which
requests.py parses because that is faster for long lists. Django module.
"""

from typing import Any, get_args

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from eventhub.api.fields import MomentField, NameField
from eventhub.api.serializers import ChangedSerializer, Serializer
from eventhub.base import limits
from eventhub.streams.serializers import CursorSerializer
from registrations.filter_source import Warned
from registrations.filters.languages import LANGUAGES
from registrations.matching.cost import By

_MAYBE: dict[str, Any] = {"required": False, "allow_null": True}
SIGNATURE_HELP = "The properties that the filter demands of an event, sorted."
_OBJECT = {"type": "object", "additionalProperties": {}}


@extend_schema_field({"oneOf": [{"type": "string"}, _OBJECT]})
class FilterField(serializers.JSONField):
    """A string, or an object if the language is written in JSON."""


@extend_schema_field({"oneOf": [{"type": "array", "items": {"type": "string"}}, _OBJECT]})
class ReportField(serializers.JSONField):
    """A list of paths, or an object of names with paths and constants."""


class LanguageSerializer(Serializer):
    name = serializers.ChoiceField(choices=list(LANGUAGES))
    about = serializers.CharField()
    example = FilterField()
    kind = serializers.ChoiceField(choices=["text", "json"])
    keys = serializers.ListField(
        source="fields",
        child=serializers.CharField(),
        help_text="Names at the top level of a filter, in a language written in JSON.",
    )


class DraftSerializer(serializers.Serializer):
    """A filter in the fields of a registration."""

    domain = serializers.CharField(**_MAYBE, help_text="The event's domain; null: any.")
    type = serializers.CharField(**_MAYBE, help_text="The event's type; null: any.")
    application = serializers.CharField(
        **_MAYBE, help_text="One of the event's applications; null: any."
    )
    attributes = serializers.DictField(
        **_MAYBE, help_text="Names or dotted paths, and the values that they must equal."
    )
    language = serializers.ChoiceField(
        choices=list(LANGUAGES),
        required=False,
        help_text="The language of `filter`; `pairs` uses the fields above instead.",
    )
    filter = FilterField(**_MAYBE, help_text="The filter, written in `language`.")


class RegistrationChangeSerializer(DraftSerializer):
    """A change. Given fields are replaced; null removes a condition, endpoint, group or report."""

    streams = serializers.ListField(
        child=NameField(), min_length=1, max_length=limits.STREAMS_PER_REGISTRATION_MAX
    )
    endpoint = serializers.IntegerField(
        **_MAYBE, help_text="The endpoint that receives callbacks; null: none."
    )
    suspended = serializers.BooleanField(
        required=False, help_text="While it is true, the registration matches nothing."
    )
    group = NameField(**_MAYBE, help_text="A group of the same client; null: none.")
    report = ReportField(
        **_MAYBE, help_text="The fields of an event that are delivered; null: the whole event."
    )
    signature = serializers.ListField(
        **_MAYBE,
        child=serializers.CharField(max_length=limits.PATH_CHARS_MAX),
        max_length=limits.SIGNATURE_NAMES_MAX,
        help_text="The properties that the filter demands, each once; refused if the hub computes "
        "others.",
    )


class NewRegistrationSerializer(RegistrationChangeSerializer):
    """A registration to be created."""

    callback = serializers.CharField(
        **_MAYBE,
        help_text="Instead of `endpoint`: the client's endpoint with that URL, created if absent.",
    )
    client = NameField(
        required=False, help_text="The client that owns it; by default the key's own client."
    )
    key = serializers.CharField(
        **_MAYBE,
        max_length=limits.REGISTRATION_KEY_CHARS_MAX,
        help_text="The client's own name for it, unique among its live registrations; immutable.",
    )
    session = NameField(
        **_MAYBE,
        help_text="The consumer session of the client that it belongs to; by default the one that"
        " the request acts through. Immutable.",
    )
    session_group = NameField(
        **_MAYBE, help_text="Instead of `session`: the client's session group. Immutable."
    )


class ReachSerializer(Serializer):
    by = serializers.ChoiceField(choices=get_args(By))
    names = serializers.ListField(child=serializers.CharField())


class CostSerializer(Serializer):
    reached_by = ReachSerializer(
        many=True, help_text="By alternative: what an event must have for it to be evaluated."
    )
    every_event = serializers.BooleanField(
        help_text="At least one alternative is evaluated for every event."
    )
    pairs = serializers.IntegerField(help_text="Number of equality tests in all alternatives.")
    tests = serializers.IntegerField(help_text="Number of other tests in all alternatives.")
    every_event_cost = serializers.IntegerField(
        help_text="Cost of evaluating it for every event, in units of about 2 µs. A client has "
        f"{limits.FILTERS_TRIED_MAX:,} units on each stream."
    )


class RegistrationSerializer(ChangedSerializer, Serializer):
    """A registration, with the number of its pairs."""  # SUN-02, SUN-08

    id = serializers.IntegerField()
    client = serializers.CharField()
    streams = serializers.ListField(child=serializers.CharField())
    domain = serializers.CharField(allow_null=True)
    type = serializers.CharField(allow_null=True)
    application = serializers.CharField(allow_null=True)
    attributes = serializers.DictField()
    language = serializers.ChoiceField(choices=list(LANGUAGES))
    filter = FilterField(allow_null=True, help_text="As it was written; null for `pairs`.")
    predicate = serializers.CharField(help_text="The filter in the predicate language.")
    warnings = serializers.ListField(
        child=serializers.ChoiceField(choices=get_args(Warned)), help_text="Probable mistakes."
    )
    equal_to = serializers.IntegerField(
        allow_null=True,
        help_text="Another registration of the client with the same streams and an equal filter.",
    )
    cost = CostSerializer(help_text="The cost of matching it.")
    signature = serializers.ListField(child=serializers.CharField(), help_text=SIGNATURE_HELP)
    pair_count = serializers.IntegerField(help_text="Number of pairs in `attributes`.")
    endpoint = serializers.IntegerField(source="endpoint_id", allow_null=True)
    callback = serializers.CharField(source="url", allow_null=True, help_text="The endpoint's URL.")
    suspended = serializers.BooleanField(
        help_text="The registration itself; its group may be suspended, too."
    )
    group = serializers.CharField(allow_null=True)
    report = ReportField(allow_null=True)
    key = serializers.CharField(allow_null=True)
    session = serializers.CharField(
        allow_null=True, help_text="The consumer session that it belongs to."
    )
    session_group = serializers.CharField(
        allow_null=True, help_text="The session group that it belongs to."
    )
    version = serializers.IntegerField(source="number", help_text="1, incremented by each change.")
    created_at = MomentField(source="created_at_us")

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, a keyword of Python."""
        text = "By stream: this version matches events after this position. Transient streams have"
        text += " none."
        positions = serializers.DictField(child=CursorSerializer(), help_text=text)
        return {**super().get_fields(), "from": positions}


class CreatedRegistrationSerializer(RegistrationSerializer):
    secret = serializers.CharField(
        required=False, help_text="Of the endpoint that was created with it; shown only once."
    )


class CreatedRegistrationsSerializer(serializers.Serializer):
    items = CreatedRegistrationSerializer(many=True)


def _one_of(name: str, *kinds: Any) -> PolymorphicProxySerializer:
    return PolymorphicProxySerializer(
        component_name=name, serializers=kinds, resource_type_field_name=None, many=False
    )


ONE_OR_MORE = _one_of(
    "NewRegistrations", NewRegistrationSerializer, NewRegistrationSerializer(many=True)
)
CREATED_ONE_OR_MORE = _one_of(
    "CreatedOneOrMore", CreatedRegistrationSerializer, CreatedRegistrationsSerializer
)
