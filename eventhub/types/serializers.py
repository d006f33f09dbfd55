"""The shapes of the types' bodies and answers."""

from typing import Any

import orjson
from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import ObjectField, OneOfField, StrictSerializer, TextField
from eventhub.access.shapes import ChangedSerializer
from eventhub.event.json_codec import time_text
from eventhub.types.rows import Declared
from eventhub.types.selectors import Shown


class SchemaField(ObjectField):
    """A JSON Schema; what it may hold is said elsewhere."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class DeclarationSerializer(StrictSerializer):
    schema = SchemaField(help_text="JSON Schema (draft 2020-12) of the attributes.")
    header = SchemaField(
        required=False,
        allow_null=True,
        default=None,
        help_text="JSON Schema of the optional header: the event's other fields, as an object.",
    )
    parent = TextField(
        max_length=limits.NAME_CHARS_MAX,
        required=False,
        allow_null=True,
        default=None,
        help_text="A declared type of the same domain; events satisfy its definition too.",
    )
    evolution = OneOfField(
        choices=("backward", "none"),
        required=False,
        default="backward",
        help_text="backward: whatever satisfied the version before satisfies this one.",
    )


class TypeSerializer(serializers.Serializer):
    domain = serializers.CharField()
    type = serializers.CharField()
    version = serializers.CharField()
    parent = serializers.CharField(allow_null=True)
    evolution = serializers.CharField()
    declared_at = serializers.DateTimeField()


class DefinitionSerializer(TypeSerializer, ChangedSerializer):
    latest_version = serializers.CharField()
    schema = ObjectField()
    header = ObjectField(allow_null=True)
    immutable = serializers.ListField(
        child=serializers.CharField(),
        help_text="Dotted paths of properties that are readOnly, here or in a parent.",
    )


def type_json(declared: Declared) -> dict[str, Any]:
    """A version, without its schemas."""
    found = declared.definition
    return {
        "domain": found.domain,
        "type": found.type,
        "version": str(found.version),
        "parent": found.parent,
        "evolution": found.evolution,
        "declared_at": time_text(declared.declared_at_us),
    }


def definition_json(shown: Shown) -> dict[str, Any]:
    found = shown.declared.definition
    return {
        **type_json(shown.declared),
        "latest_version": str(shown.latest),
        "schema": orjson.loads(found.schema),
        "header": None if found.header is None else orjson.loads(found.header),
        "immutable": shown.immutable,
    }
