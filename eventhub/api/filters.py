"""Query parameters that filter a list, declared with django-filter and parsed strictly: an invalid
value is refused with the parameter's name. Django module.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError

from eventhub.access.names import valid_name
from eventhub.api.fields import MomentField
from eventhub.api.pagination import NUMBER
from eventhub.api.problems import validation_error
from eventhub.base import errors


class TextFilter(django_filters.Filter):
    """A string, parsed by `read`, which raises an EventHubError."""

    kind: type = str
    words: Sequence[str] = ()  # the allowed values, if they are few

    def read(self, text: str) -> Any:
        return text


class NameFilter(TextFilter):
    """A name."""

    def read(self, text: str) -> str:
        return valid_name(text, field="")


class NumberFilter(TextFilter):
    """A number."""

    kind = int

    def read(self, text: str) -> int:
        if not NUMBER.fullmatch(text):
            raise errors.InvalidField("This must be a number.")
        return int(text)


class MomentFilter(TextFilter):
    """A time with an offset."""

    def read(self, text: str) -> datetime:
        try:
            found: datetime = MomentField().to_internal_value(text)
        except ValidationError as error:
            raise validation_error(error) from None
        return found


class WordFilter(TextFilter):
    """One of a few strings."""

    def __init__(self, words: Sequence[str], **options: Any) -> None:
        super().__init__(**options)
        self.words = words

    def read(self, text: str) -> str:
        if text not in self.words:
            raise errors.InvalidField(f"This must be one of {', '.join(self.words)}.")
        return text


class FlagFilter(TextFilter):
    """`true` or `false`."""

    kind = bool

    def read(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise errors.InvalidField("This must be `true` or `false`.")
        return text == "true"


class FilterSet(django_filters.FilterSet):
    """Filters of a list."""

    @property
    def actor(self) -> Any:
        return self.request.parser_context["view"].actor

    @cached_property
    def filter_values(self) -> dict[str, Any]:
        """The parsed values of the filters, by name; None: not given."""
        found: dict[str, Any] = {}
        for name, one in self.filters.items():
            text = self.data.get(name)
            try:
                found[name] = None if text is None else one.read(text)
            except errors.EventHubError as error:
                error.field = name
                raise
        return found

    def filter_queryset(self, queryset: QuerySet) -> QuerySet:
        """Apply the filters that were given, also if the value is false."""
        for name, value in self.filter_values.items():
            if value is not None:
                queryset = self.filters[name].filter(queryset, value)
        return queryset

    @classmethod
    def parameters(cls) -> Iterator[OpenApiParameter]:
        """Yield the filters as parameters of the OpenAPI document."""
        for name, one in cls.base_filters.items():
            yield OpenApiParameter(
                name, one.kind, description=one.extra["help_text"], enum=one.words or None
            )
