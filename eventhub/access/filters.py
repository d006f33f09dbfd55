"""Query parameters that choose the items of a list, declared with django-filter and read strictly:
what is given is of its kind, or the request is refused at its name.
"""

import re
from typing import Any

from django import forms
from django.db.models import QuerySet
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import extend_schema_field
from rest_framework.request import Request

from eventhub import errors
from eventhub.access.names import valid_name

_NUMBER = re.compile(r"[0-9]{1,18}")


class StrictFilters(django_filters.DjangoFilterBackend):
    """DRF's filter backend; what is refused is raised by the form."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        filterset = self.get_filterset(request, queryset, view)
        return queryset if filterset is None else filterset.qs


class StrictForm(forms.Form):
    """Each parameter once, as a text; None: not given."""

    def _clean_fields(self) -> None:
        for name, field in self.fields.items():
            text = self.data.get(name)
            try:
                self.cleaned_data[name] = None if text is None else field.read(text)
            except errors.EventHubError as error:
                error.field = name
                raise


class FilterSet(django_filters.FilterSet):
    """Filters of a list."""

    class Meta:
        form = StrictForm

    @property
    def actor(self) -> Any:
        return self.request.parser_context["view"].actor

    def filter_queryset(self, queryset: QuerySet) -> QuerySet:
        """By what is given, also if it is false."""
        for name, value in self.form.cleaned_data.items():
            if value is not None:
                queryset = self.filters[name].filter(queryset, value)
        return queryset


class TextField(forms.Field):
    """A text, read by `read`, which raises an error of ours."""

    def read(self, text: str) -> Any:
        return text


class NameField(TextField):
    def read(self, text: str) -> str:
        return valid_name(text, field="")


class NumberField(TextField):
    def read(self, text: str) -> int:
        if not _NUMBER.fullmatch(text):
            raise errors.InvalidField("This is a number.")
        return int(text)


class FlagField(TextField):
    def read(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise errors.InvalidField("This is `true` or `false`.")
        return text == "true"


class WordField(TextField):
    def __init__(self, choices: Any, null_label: Any = None, **options: Any) -> None:
        self.words = [word for word, _ in choices]
        super().__init__(**options)

    def read(self, text: str) -> str:
        if text not in self.words:
            raise errors.InvalidField(f"This is one of {', '.join(self.words)}.")
        return text


class NameFilter(django_filters.CharFilter):
    """A name."""

    field_class = NameField


class NumberFilter(django_filters.NumberFilter):
    """A number."""

    field_class = NumberField

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        described = {"type": "integer", "description": options.get("help_text", "")}
        extend_schema_field(described)(self)

    def get_max_validator(self) -> None:
        return None


class FlagFilter(django_filters.BooleanFilter):
    """`true` or `false`."""

    field_class = FlagField


class WordFilter(django_filters.ChoiceFilter):
    """One of a few words."""

    field_class = WordField

    def __init__(self, words: Any, **options: Any) -> None:
        super().__init__(choices=[(word, word) for word in words], **options)
