"""One request that a provider sent to a source, in the form that verifiers and maps read.
Plain module.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import orjson

from eventhub.base import limits
from eventhub.base.errors import InvalidUtf8, MalformedJson
from eventhub.event.inbound import JSON

FORM = "application/x-www-form-urlencoded"
_PAYLOAD = "payload"  # the one field of a form that carries JSON, of GitHub and Slack


class ReceivedRequest(NamedTuple):
    """A request. `headers`: by lower-case name; `query`: as sent; `target`: scheme, host, path and
    query as the provider addressed them.
    """

    headers: dict[str, str]
    query: str
    body: bytes
    target: str = ""

    @property
    def media_type(self) -> str:
        """The media type without its parameters; any JSON counts as application/json."""
        found = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return JSON if found.endswith("+json") else found

    def parameters(self) -> list[tuple[str, str]]:
        """Return the query parameters in their order. Raises ValueError for too many."""
        return _pairs(self.query)

    def form(self) -> list[tuple[str, str]]:
        """Return the fields of a form in their order, none if the body is none. Raises ValueError
        for too many, or if they are not UTF-8.
        """
        return _pairs(self.body.decode()) if self.media_type == FORM else []

    def document(self) -> Any:
        """Return the body as JSON values: of a form an object of its texts, or the JSON in its only
        field `payload`; None for another media type. Raises MalformedJson, InvalidUtf8.
        """
        if self.media_type == FORM:
            fields = dict(_readable_form(self))
            return _json(fields[_PAYLOAD].encode()) if [*fields] == [_PAYLOAD] else fields
        if self.media_type == JSON and self.body:
            return _json(self.body)
        return None


def headers_of(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name; those that are repeated are joined with commas."""
    found: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True, max_num_fields=limits.SOURCE_FORM_FIELDS_MAX)


def _readable_form(request: ReceivedRequest) -> list[tuple[str, str]]:
    try:
        return request.form()
    except UnicodeDecodeError:
        raise InvalidUtf8("The form is not UTF-8.", field="body") from None
    except ValueError:
        message = f"The form has more than {limits.SOURCE_FORM_FIELDS_MAX} fields."
        raise MalformedJson(message, field="body") from None


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedJson(f"The body is not JSON: {error}.", field="body") from None
