"""The shapes of the types' bodies and answers."""

from typing import Any

import orjson
from rest_framework import serializers

from eventhub import limits
from eventhub.access.fields import MomentField, ObjectField, OneOfField, TextField
from eventhub.access.shapes import ChangedSerializer, Serializer


class SchemaField(ObjectField):
    """A JSON Schema; what it may hold is said elsewhere."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class DeclarationSerializer(Serializer):
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


class VersionField(serializers.CharField):
    """A number as a text, as events have it."""

    def to_representation(self, value: int) -> str:
        return str(value)


class StoredSchemaField(ObjectField):
    """A JSON Schema, of its text."""

    def to_representation(self, value: str) -> Any:
        return orjson.loads(value)


class TypeSerializer(Serializer):
    domain = serializers.CharField(source="definition.domain")
    type = serializers.CharField(source="definition.type")
    version = VersionField(source="definition.version")
    parent = serializers.CharField(source="definition.parent", allow_null=True)
    evolution = serializers.CharField(source="definition.evolution")
    declared_at = MomentField(source="declared_at_us")


class DefinitionSerializer(TypeSerializer, ChangedSerializer):
    latest_version = VersionField(source="latest")
    schema = StoredSchemaField(source="definition.schema")
    header = StoredSchemaField(source="definition.header", allow_null=True)
    immutable = serializers.ListField(
        child=serializers.CharField(),
        help_text="Dotted paths of properties that are readOnly, here or in a parent.",
    )
