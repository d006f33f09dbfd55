"""Serializers of event types. Django module."""

from typing import Any

import orjson
from rest_framework import serializers

from eventhub.api.fields import ObjectField, OneOfField, TextField
from eventhub.api.serializers import AnswerSerializer, ChangedSerializer, Serializer
from eventhub.base import limits
from eventhub.types.models import EventType


class SchemaField(ObjectField):
    """A JSON Schema, stored as text; schemas.py validates it."""

    def to_internal_value(self, data: Any) -> Any:
        return data

    def to_representation(self, value: str) -> Any:
        return orjson.loads(value)


class DeclarationSerializer(Serializer):
    schema = SchemaField(help_text="JSON Schema (draft 2020-12) of the attributes.")
    header = SchemaField(
        allow_null=True,
        default=None,
        help_text="JSON Schema of the optional header: the event's other fields, as an object.",
    )
    parent = TextField(
        max_length=limits.NAME_CHARS_MAX,
        allow_null=True,
        default=None,
        help_text="A declared type of the same domain; events satisfy its definition too.",
    )
    evolution = OneOfField(
        choices=EventType.Evolution.values,
        default="backward",
        help_text="backward: every event that satisfied the previous version satisfies this one.",
    )


class VersionField(serializers.CharField):
    """A version number as a string, as in events."""

    def to_representation(self, value: int) -> str:
        return str(value)


class TypeSerializer(AnswerSerializer):
    version = VersionField()

    class Meta:
        model = EventType
        fields: tuple[str, ...] = (
            *("domain", "type", "version", "parent", "evolution", "declared_at", "deletes_at"),
        )


class DefinitionSerializer(TypeSerializer, ChangedSerializer):
    latest_version = VersionField(source="latest")
    schema = SchemaField()
    header = SchemaField(allow_null=True)
    immutable = serializers.ListField(
        child=serializers.CharField(),
        help_text="Dotted paths of properties that are readOnly, here or in a parent.",
    )

    class Meta(TypeSerializer.Meta):
        fields = (
            *TypeSerializer.Meta.fields,
            *("changed", "latest_version", "schema", "header", "immutable"),
        )
