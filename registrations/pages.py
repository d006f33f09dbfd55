"""Numbers in paths and queries: tickets, endpoints, and where a page of them begins."""

import re

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from eventhub.access.names import valid_name
from eventhub.access.view import Page
from eventhub.errors import EventHubError, InvalidField

CLIENT = OpenApiParameter(
    "client", str, description="Of this client only; a key sees its own client's."
)
_NUMBER = re.compile(r"[0-9]{1,18}")


def number_of(text: str, *, otherwise: EventHubError) -> int:
    """The number in a path, or the error if it is none."""
    if not _NUMBER.fullmatch(text):
        raise otherwise
    return int(text)


def number_after(page: Page) -> int:
    """The last number of the page before; 0 at the beginning."""
    if page.after and not _NUMBER.fullmatch(page.after):
        raise InvalidField("Pass the `next` of the page before.", field="after")
    return int(page.after or 0)


def asked_number(request: Request, name: str) -> int | None:
    """A query parameter that is a number, or None if it is not given."""
    text = request.query_params.get(name)
    if text is None:
        return None
    return number_of(text, otherwise=InvalidField("This is a number.", field=name))


def asked_flag(request: Request, name: str) -> bool | None:
    """A query parameter that is `true` or `false`, or None if it is not given."""
    text = request.query_params.get(name)
    if text not in (None, "true", "false"):
        raise InvalidField("This is `true` or `false`.", field=name)
    return None if text is None else text == "true"


def asked_name(request: Request, name: str) -> str | None:
    """A query parameter that is a name, or None if it is not given."""
    text = request.query_params.get(name)
    return None if text is None else valid_name(text, field=name)
