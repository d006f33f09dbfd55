"""One OpenAPI document of the management API and the hot doors, and pages for people made from it.
Django module.

The pages are plain HTML without scripts and load nothing from elsewhere.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from drf_spectacular.generators import SchemaGenerator

from delivery.listening.operations import LISTEN_ROUTES
from eventhub.api.problems import only_read
from eventhub.api.schema import SCHEMES
from eventhub.base import errors
from eventhub.http.routes import HTTP_ROUTES
from registrations.bulk.operations import BULK_ROUTES
from registrations.explain.operations import EXPLAIN_ROUTES
from registrations.interest.operations import INTEREST_ROUTES

_METHODS = ("get", "post", "put", "patch", "delete")
_STYLE = mark_safe(
    "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:auto;padding:1rem}"
    "code{background:#eee;padding:0 .2em}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #ccc;padding:.3em;text-align:left;vertical-align:top}"
    "h2{margin-top:2rem;font-size:1.1rem}@media(prefers-color-scheme:dark){body{background:#111;"
    "color:#ddd}code{background:#333}a{color:#8bf}}</style>"
)
_PAGE = '<!doctype html><html lang="en"><meta charset="utf-8"><title>{0}</title>{1}<h1>{0}</h1>{2}'
_ERRORS = (
    "<p>An error is <code>application/problem+json</code>. Programs go by <code>code</code>,"
    " which stays; <code>position</code> says where in the input.</p>"
    "<table><tr><th>code</th><th>status</th><th>what to do</th></tr>{}</table>"
)
_INTRO = mark_safe(
    '<p>Every operation, as in <a href="/docs/openapi.json">the OpenAPI document</a>.'
    ' Errors are explained in <a href="/docs/errors">their list</a>.</p>'
)


def add_routes(
    result: dict[str, Any], generator: SchemaGenerator, request: Any, public: bool
) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook: the doors' operations join the document.

    Raises RuntimeError for a type of theirs that is called like a serializer with other fields.
    """
    schemas = result["components"]["schemas"]
    result["components"]["securitySchemes"] = SCHEMES
    for door in (*HTTP_ROUTES, *BULK_ROUTES, *INTEREST_ROUTES, *LISTEN_ROUTES, *EXPLAIN_ROUTES):
        result["paths"].setdefault(door.path, {})[door.method.lower()] = door.operation()
        for name, schema in door.schemas().items():
            known = schemas.setdefault(name, schema)
            if known.get("properties", {}).keys() != schema.get("properties", {}).keys():
                raise RuntimeError(f"Two schemas of different fields are called {name}.")
    for _, _, operation in _operations(result):
        operation.setdefault("security", [])  # said of those too that need no credentials
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


@functools.cache
def document() -> dict[str, Any]:
    """The OpenAPI document; the same for every caller."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


@functools.cache
def document_text() -> str:
    """The document as it is served and kept under version control: sorted and indented."""
    shown = orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(document(), option=shown).decode() + "\n"


@only_read
def openapi_json(request: HttpRequest) -> HttpResponse:
    """`/docs/openapi.json`"""
    return HttpResponse(document_text(), content_type="application/json")


@only_read
def api_page(request: HttpRequest) -> HttpResponse:
    """`/docs/api`: every operation with its errors, readable."""
    parts = [_operation_html(*found) for found in _operations(document())]
    return HttpResponse(_page("EventHub API", [_INTRO, *parts]))


@only_read
def errors_page(request: HttpRequest) -> HttpResponse:
    """`/docs/errors`: every error with its code, status, and what to do; each code is an anchor."""
    rows = format_html_join(
        "",
        '<tr id="{0}"><td><code>{0}</code></td><td>{1}</td><td>{2}</td></tr>',
        ((error.code, error.status, error.__doc__) for error in all_errors()),
    )
    return HttpResponse(_page("EventHub errors", [format_html(_ERRORS, rows)]))


def all_errors() -> list[type[errors.EventHubError]]:
    """Every error of the tree, by status and code."""
    found = [errors.EventHubError]
    for error in found:
        found += error.__subclasses__()
    return sorted(set(found), key=lambda error: (error.status, error.code))


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method in _METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def _operation_html(method: str, path: str, operation: dict[str, Any]) -> SafeString:
    queries = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {})
    bodies = [f"{media}: {_schema_name(one.get('schema', {}))}" for media, one in body.items()]
    notes = [("Query", ", ".join(queries)), ("Body", "; ".join(bodies))]
    answers = sorted((str(status), one) for status, one in operation["responses"].items())
    return format_html(
        "<h2><code>{} {}</code></h2><p>{} {}</p>{}<table>{}</table>",
        method,
        path,
        operation["summary"],
        operation["description"],
        format_html_join("", "<p>{}: {}</p>", (note for note in notes if note[1])),
        format_html_join(
            "",
            "<tr><td>{}</td><td>{}</td></tr>",
            ((status, _linked(one.get("description", ""))) for status, one in answers),
        ),
    )


def _schema_name(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(map(_schema_name, choices))
    if schema.get("type") == "array":
        return f"[{_schema_name(schema.get('items', {}))}]"
    return str(schema.get("description", schema.get("type", "")))


def _linked(text: str) -> SafeString:
    """Codes as links to their explanation; everything else is escaped."""
    codes = re.findall(r"`(\w+)`", text)
    links = format_html_join(", ", '<a href="/docs/errors#{0}"><code>{0}</code></a>', zip(codes))
    return links if codes else format_html("{}", text)


def _page(title: str, parts: list[SafeString]) -> str:
    body = format_html_join("", "{}", ((part,) for part in parts))
    return format_html(_PAGE, title, _STYLE, body)
