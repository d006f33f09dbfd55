"""Serializers of the management API: strict about what is sent, and fast in showing a page.
Django module.

What a serializer shows is planned once for its class: of each field how its value is read from an
item (an attribute of a model or a row, or a name of a dict), and what becomes of it. DRF makes all
fields again for every serializer, which takes longer than a page of 50 items.
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

_AS_THEY_ARE = {
    kind.to_representation
    for kind in (
        *(serializers.CharField, serializers.IntegerField, serializers.BooleanField),
        *(serializers.ChoiceField, serializers.DictField, serializers.JSONField),
    )
}


class Shown(NamedTuple):
    """How a field is shown."""

    name: str
    source: str  # "*": the item itself
    read: Callable[[Any], Any]
    convert: Callable[[Any], Any] | None  # None: the value is shown as it is
    required: bool


class Represents:
    """Shows items by the plan of its class. What need not be there is left out where it is None."""

    shown_once = False  # holds a secret that nothing shows again

    @classmethod
    @cache
    def plan(cls) -> tuple[Shown, ...]:
        """Of all fields but `changed`, which conditions.py adds."""
        fields = cls().fields.items()  # type: ignore[attr-defined]
        return tuple(_shown(*each) for each in fields if each[0] != "changed")

    @classmethod
    def represent(cls, item: Any) -> dict[str, Any]:
        """An item as the JSON of an answer."""
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
    """Refuses names that it does not know."""

    def get_fields(self) -> dict[str, Any]:
        """What is computed is always there, and null is refused in the same words everywhere."""
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
    """Fields by the model: their kind, whether they must be given, and what they mean, by the
    column's comment. Whether a value is taken by another row is asked by services, under a lock.
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
            given = model_field.has_default() or model_field.null or model_field.blank
            options["required"] = not given
        if model_field.db_comment:
            options.setdefault("help_text", _sentence(model_field.db_comment))
        return kind, options

    def get_validators(self) -> list[Any]:
        return []


class ChangedSerializer(serializers.Serializer):
    """What can be changed under a condition."""

    changed = serializers.IntegerField(
        help_text="The sequence of `system` that told its last change; its ETag, for `If-Match`."
    )


class AnswerSerializer(ModelSerializer):
    """What is shown is shown whole."""

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            field.required, field.default = True, serializers.empty
        return fields


def _shown(name: str, field: serializers.Field) -> Shown:
    source, kept = field.source, type(field).to_representation in _AS_THEY_ARE
    read = (lambda item: item) if source == "*" else attrgetter(source)
    return Shown(name, source, read, None if kept else field.to_representation, field.required)


def _sentence(comment: str) -> str:
    end = "" if comment.endswith(".") else "."
    return f"{comment[0].upper()}{comment[1:]}{end}"


def undocumented() -> list[type]:
    """Classes whose docstrings describe no schema: DRF's, and those here."""
    found: list[type] = get_lib_doc_excludes()
    return [*found, Represents, Serializer, ModelSerializer, AnswerSerializer]
