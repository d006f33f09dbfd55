"""Pages of lists: the one form that all have, `after` and `limit` in, `items` and `next` out.
Django module.
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

_WHOLE = re.compile(r"[0-9]{1,18}")
_DIGITS = {models.IntegerField: 9, models.DateTimeField: 17}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


PAGE = (
    OpenApiParameter("after", str, description="The `next` of the page before."),
    OpenApiParameter("limit", int, description=f"Items per page, 1 to {limits.PAGE_ITEMS_MAX}."),
)


class Page(NamedTuple):
    """What part of a list is asked for: the items after `after` in the list's order."""

    after: str
    limit: int


class Listing(NamedTuple):
    """A list that is no queryset. `fetch` gives at most `count` items behind the cursor's values
    (None: from the beginning on), `fields` are what the cursor is made of.
    """

    fetch: Callable[[tuple[Any, ...] | None, int], Sequence[Any]]
    fields: Sequence[models.Field]


def read_page(request: Request) -> Page:
    """`?after=` (the `next` of the page before) and `?limit=`."""
    after = request.query_params.get("after", "")
    if after:
        valid_name(after, field="after")
    text = request.query_params.get("limit", str(limits.PAGE_ITEMS_DEFAULT))
    if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= limits.PAGE_ITEMS_MAX:
        raise InvalidField(f"A limit is from 1 to {limits.PAGE_ITEMS_MAX}.", field="limit")
    return Page(after, int(text))


def foreign_cursor() -> InvalidField:
    """What is refused as no `next` of this list."""
    return InvalidField("Pass the `next` of the page before.", field="after")


class Cut(NamedTuple):
    """A page that was cut elsewhere, and what the next one begins after."""

    items: Sequence[Any]
    next: str | None


class CursorPagination(BasePagination):
    """Pages in the order that the view declares in `ordering`: names of fields, all ascending or
    all descending, that no two items share. The cursor is their values in the last item, with dots
    between, or those of the view's `cursor`; a page is found by comparing rows with it, however far
    into the list it is.
    """

    parameters: ClassVar[tuple[OpenApiParameter, ...]] = PAGE
    next: str | None = None

    def paginate_queryset(
        self, queryset: Any, request: Request, view: Any = None
    ) -> Sequence[Any] | None:
        """At most a page of the items; one more is fetched to know whether there are more."""
        if isinstance(queryset, Cut):
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
        following = {
            "type": ["string", "null"],
            "description": "Pass as `after` for the next page; null at the end.",
        }
        return {
            "type": "object",
            "required": ["items", "next"],
            "properties": {"items": schema, "next": following},
        }


class WholeList(CursorPagination):
    """All items on one page, where they can be few only."""

    parameters = ()

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        return list(queryset)


def _ordered(queryset: models.QuerySet, view: Any) -> Listing:
    """A queryset in the order of its view. Rows behind a place are compared as rows."""
    names = [name.removeprefix("-") for name in view.ordering]
    cursor, meta = view.cursor or names, queryset.model._meta
    fields = [meta.pk if name == "pk" else meta.get_field(name) for name in cursor]
    compared = TupleLessThan if view.ordering[0].startswith("-") else TupleGreaterThan

    def fetch(after: tuple[Any, ...] | None, count: int) -> models.QuerySet:
        rows = queryset.order_by(*view.ordering)
        if after is not None:
            place = dict(zip(cursor, after, strict=True))
            behind = tuple(place[name] for name in names)
            rows = rows.filter(compared(tuple(map(models.F, names)), behind))
        return rows[:count]

    return Listing(fetch, fields)


def values_of(text: str, fields: Sequence[models.Field]) -> tuple[Any, ...]:
    """The values of a cursor. Raises InvalidField for one of another list."""
    texts = text.split(".") if len(fields) > 1 else [text]
    if len(texts) != len(fields):
        raise foreign_cursor()
    return tuple(map(_value, texts, fields))


def text_of(item: Any, fields: Sequence[models.Field]) -> str:
    """An item as a cursor."""
    values = (getattr(item, field.attname) for field in fields)
    return ".".join(str(micros(one) if isinstance(one, datetime) else one) for one in values)


def _value(text: str, field: models.Field) -> Any:
    if isinstance(field, models.CharField | models.TextField):
        return text
    if not _WHOLE.fullmatch(text) or len(text) > _DIGITS.get(type(field), 18):
        raise foreign_cursor()
    if isinstance(field, models.DateTimeField):
        return _EPOCH + timedelta(microseconds=int(text))
    return int(text)


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
