"""Serializers of the management API: strict on input, fast on output. Django module.

The representation of an item is planned once per class: for each field, how its value is read from
an item (an attribute of a model or a row, or a key of a dict) and converted. DRF builds all fields
again for every serializer, which takes longer than representing a page of 50 items.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from django.db import models
from drf_spectacular.plumbing import get_lib_doc_excludes
from rest_framework import serializers

from eventhub.api.fields import FlagField, MomentField, OneOfField, TextField, WholeField
from eventhub.base.strict_json import NOT_NULL, printable

_UNCONVERTED = {
    kind.to_representation
    for kind in (
        *(serializers.CharField, serializers.IntegerField, serializers.BooleanField),
        *(serializers.ChoiceField, serializers.DictField, serializers.JSONField),
    )
}


class FieldPlan(NamedTuple):
    """How a field is read and converted."""

    name: str
    source: str  # "*": the item itself
    read: Callable[[Any], Any]
    convert: Callable[[Any], Any] | None  # None: the value is used unchanged
    required: bool


class Represents:
    """Represents items by the plan of its class; an optional field that is None is omitted."""

    has_secret = False  # contains a secret that no other response does

    @classmethod
    @cache
    def plan(cls) -> tuple[FieldPlan, ...]:
        """Plan all fields except `changed`, which if_match.py adds."""
        fields = cls().fields.items()  # type: ignore[attr-defined]
        return tuple(_field_plan(*each) for each in fields if each[0] != "changed")

    @classmethod
    def represent(cls, item: Any) -> dict[str, Any]:
        """Return the JSON of an item."""
        found: dict[str, Any] = {}
        named = isinstance(item, dict)
        for name, source, read, convert, required in cls.plan():
            value = item.get(source) if named and source != "*" else read(item)
            if value is not None:
                found[name] = value if convert is None else convert(value)
            elif required:
                found[name] = None
        return found

    def to_representation(self, instance: Any) -> Any:
        return self.represent(instance)


class Serializer(Represents, serializers.Serializer):
    """A serializer that refuses unknown names."""

    def get_fields(self) -> dict[str, Any]:
        """Return the fields: computed ones are required, and null is refused with the same text."""
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            field.required = field.required or field.read_only
            field.error_messages["null"] = NOT_NULL
        return fields

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            for name in data:
                if name not in self.fields:
                    raise serializers.ValidationError(
                        {printable(name): "Unknown."}, "unknown_field"
                    )
        return super().to_internal_value(data)


class ModelSerializer(Serializer, serializers.ModelSerializer):
    """A serializer of a model: field types, whether they are required, and their descriptions, from
    the column comments. Services check uniqueness, under a lock.
    """

    serializer_choice_field = OneOfField
    serializer_field_mapping: ClassVar[dict[type, type]] = {
        **serializers.ModelSerializer.serializer_field_mapping,
        **dict.fromkeys((models.BigAutoField, models.BigIntegerField), WholeField),
        **dict.fromkeys((models.IntegerField, models.SmallIntegerField), WholeField),
        **dict.fromkeys((models.CharField, models.TextField), TextField),
        models.BooleanField: FlagField,
        models.DateTimeField: MomentField,
    }

    def build_standard_field(
        self, field_name: str, model_field: models.Field
    ) -> tuple[type, dict[str, Any]]:
        kind, options = super().build_standard_field(field_name, model_field)
        for name in ("validators", "model_field", "style", "min_value", "max_value", "read_only"):
            options.pop(name, None)
        if isinstance(model_field.db_default, str | int):
            options["default"] = model_field.db_default
        else:
            optional = model_field.has_default() or model_field.null or model_field.blank
            options["required"] = not optional
        if model_field.db_comment:
            options.setdefault("help_text", _sentence(model_field.db_comment))
        return kind, options

    def get_validators(self) -> list[Any]:
        return []


class ChangedSerializer(serializers.Serializer):
    """A resource whose changes take conditions."""

    changed = serializers.IntegerField(
        help_text="The sequence in `system` of its last change; its ETag, for `If-Match`."
    )


class AnswerSerializer(ModelSerializer):
    """A response in which every field is present."""

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            field.required, field.default = True, serializers.empty
        return fields


def _field_plan(name: str, field: serializers.Field) -> FieldPlan:
    source, unconverted = field.source, type(field).to_representation in _UNCONVERTED
    read = (lambda item: item) if source == "*" else attrgetter(source)
    convert = None if unconverted else field.to_representation
    return FieldPlan(name, source, read, convert, field.required)


def _sentence(comment: str) -> str:
    end = "" if comment.endswith(".") else "."
    return f"{comment[0].upper()}{comment[1:]}{end}"


def undocumented() -> list[type]:
    """Return the classes whose docstrings describe no schema: those of DRF and of this module."""
    found: list[type] = get_lib_doc_excludes()
    return [*found, Represents, Serializer, ModelSerializer, AnswerSerializer]


class EmptySerializer(Serializer):
    """An empty object."""
