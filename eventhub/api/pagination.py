"""Cursor pagination, the same for all lists: a request has `after` and `limit`, a page has `items`
and `next`. Django module.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple

from django.db import models
from django.db.models.fields.tuple_lookups import TupleGreaterThan, TupleLessThan
from drf_spectacular.utils import OpenApiParameter
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from eventhub.access.names import valid_name
from eventhub.base import limits
from eventhub.base.errors import InvalidField

NUMBER = re.compile(r"[0-9]{1,18}")
_DIGITS = {models.IntegerField: 9, models.DateTimeField: 17}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


PAGE = (
    OpenApiParameter("after", str, description="The `next` of the previous page."),
    OpenApiParameter("limit", int, description=f"Items per page, 1 to {limits.PAGE_ITEMS_MAX}."),
)


class Page(NamedTuple):
    """The requested part of a list: at most `limit` items after `after`, in the list's order."""

    after: str
    limit: int


class Listing(NamedTuple):
    """A list that is no queryset. `fetch` returns at most `count` items after the cursor's values
    (None: from the beginning); `fields` are the fields of the cursor.
    """

    fetch: Callable[[tuple[Any, ...] | None, int], Sequence[Any]]
    fields: Sequence[models.Field]


def read_page(request: Request) -> Page:
    """Parse `?after=` (the `next` of the previous page) and `?limit=`. Raises InvalidField."""
    after = request.query_params.get("after", "")
    if after:
        valid_name(after, field="after")
    text = request.query_params.get("limit", str(limits.PAGE_ITEMS_DEFAULT))
    if not NUMBER.fullmatch(text) or not 1 <= int(text) <= limits.PAGE_ITEMS_MAX:
        raise InvalidField(f"A limit is from 1 to {limits.PAGE_ITEMS_MAX}.", field="limit")
    return Page(after, int(text))


def cursor_error() -> InvalidField:
    """Return the error for an `after` that is no `next` of this list."""
    return InvalidField("Pass the `next` of the previous page.", field="after")


class PreparedPage(NamedTuple):
    """A page that the view selected itself, and its `next`."""

    items: Sequence[Any]
    next: str | None


class CursorPagination(BasePagination):
    """Pages in the order of the view's `ordering`: field names, all ascending or all descending,
    unique together. The cursor is the values of these fields, or of the view's `cursor`, in the
    last item, joined with dots. A page is found by comparing rows with it (keyset pagination), so
    its cost does not grow with its distance from the beginning.
    """

    parameters: ClassVar[tuple[OpenApiParameter, ...]] = PAGE
    next: str | None = None

    def paginate_queryset(
        self, queryset: Any, request: Request, view: Any = None
    ) -> Sequence[Any] | None:
        """Return a page of the items; fetch one more to know whether there is a next page."""
        if isinstance(queryset, PreparedPage):
            self.next = queryset.next
            return queryset.items
        page = read_page(request)
        fetch, fields = queryset if isinstance(queryset, Listing) else _ordered(queryset, view)
        after = values_of(page.after, fields) if page.after else None
        found = [*fetch(after, page.limit + 1)]
        items = found[: page.limit]
        self.next = text_of(items[-1], fields) if len(found) > page.limit else None
        return items

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"items": data, "next": self.next})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        next_schema = {
            "type": ["string", "null"],
            "description": "Pass as `after` for the next page; null at the end.",
        }
        return {
            "type": "object",
            "required": ["items", "next"],
            "properties": {"items": schema, "next": next_schema},
        }


class WholeList(CursorPagination):
    """A list whose items always fit one page."""

    parameters = ()

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        return list(queryset)


def _ordered(queryset: models.QuerySet, view: Any) -> Listing:
    """Return a queryset in the order of its view; the cursor is compared as a row value."""
    names = [name.removeprefix("-") for name in view.ordering]
    cursor, meta = view.cursor or names, queryset.model._meta
    fields = [meta.pk if name == "pk" else meta.get_field(name) for name in cursor]
    compared = TupleLessThan if view.ordering[0].startswith("-") else TupleGreaterThan

    def fetch(after: tuple[Any, ...] | None, count: int) -> models.QuerySet:
        rows = queryset.order_by(*view.ordering)
        if after is not None:
            values = dict(zip(cursor, after, strict=True))
            last = tuple(values[name] for name in names)
            rows = rows.filter(compared(tuple(map(models.F, names)), last))
        return rows[:count]

    return Listing(fetch, fields)


def values_of(text: str, fields: Sequence[models.Field]) -> tuple[Any, ...]:
    """Parse the values of a cursor. Raises InvalidField for one of another list."""
    texts = text.split(".") if len(fields) > 1 else [text]
    if len(texts) != len(fields):
        raise cursor_error()
    return tuple(map(_value, texts, fields))


def text_of(item: Any, fields: Sequence[models.Field]) -> str:
    """Return the cursor of an item."""
    values = (getattr(item, field.attname) for field in fields)
    return ".".join(str(micros(one) if isinstance(one, datetime) else one) for one in values)


def _value(text: str, field: models.Field) -> Any:
    if isinstance(field, models.CharField | models.TextField):
        return text
    if not NUMBER.fullmatch(text) or len(text) > _DIGITS.get(type(field), 18):
        raise cursor_error()
    if isinstance(field, models.DateTimeField):
        return _EPOCH + timedelta(microseconds=int(text))
    return int(text)


def micros(moment: datetime) -> int:
    """Return the microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
