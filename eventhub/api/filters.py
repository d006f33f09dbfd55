"""Query parameters that choose the items of a list, declared with django-filter and read strictly:
what is given is of its kind, or the request is refused at its name. Django module.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter

from eventhub.access.names import valid_name
from eventhub.base import errors

_NUMBER = re.compile(r"[0-9]{1,18}")


class TextFilter(django_filters.Filter):
    """A text, read by `read`, which raises an error of ours."""

    kind: type = str
    words: Sequence[str] = ()  # that it is one of, if they are few

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
        if not _NUMBER.fullmatch(text):
            raise errors.InvalidField("This is a number.")
        return int(text)


class WordFilter(TextFilter):
    """One of a few words."""

    def __init__(self, words: Sequence[str], **options: Any) -> None:
        super().__init__(**options)
        self.words = words

    def read(self, text: str) -> str:
        if text not in self.words:
            raise errors.InvalidField(f"This is one of {', '.join(self.words)}.")
        return text


class FlagFilter(TextFilter):
    """`true` or `false`."""

    kind = bool

    def read(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise errors.InvalidField("This is `true` or `false`.")
        return text == "true"


class FilterSet(django_filters.FilterSet):
    """Filters of a list."""

    @property
    def actor(self) -> Any:
        return self.request.parser_context["view"].actor

    @cached_property
    def asked(self) -> dict[str, Any]:
        """The values of the filters, each given once, as a text; None: not given."""
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
        """By what is given, also if it is false."""
        for name, value in self.asked.items():
            if value is not None:
                queryset = self.filters[name].filter(queryset, value)
        return queryset

    @classmethod
    def parameters(cls) -> Iterator[OpenApiParameter]:
        """The filters as the OpenAPI document shows them."""
        for name, one in cls.base_filters.items():
            yield OpenApiParameter(
                name, one.kind, description=one.extra["help_text"], enum=one.words or None
            )
