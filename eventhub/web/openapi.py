"""The OpenAPI document of the management API and the hot routes, and HTML pages rendered from it.
Django module.

The pages have no scripts and load nothing from other hosts.
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

from delivery.listening.route_table import LISTEN_ROUTES
from delivery.mcp.operations import MCP_ROUTES
from delivery.sessions.pull_operations import PULL_ROUTES
from delivery.sessions.route_table import SESSION_ROUTES
from eventhub.api.problems import read_only
from eventhub.api.schema import SCHEMES
from eventhub.base import errors
from eventhub.http.routes import HTTP_ROUTES
from registrations.bulk.operations import BULK_ROUTES
from registrations.explain.operations import EXPLAIN_ROUTES
from registrations.interest.operations import INTEREST_ROUTES
from registrations.sources.operations import SOURCE_ROUTES

_HOT_ROUTES = (
    *HTTP_ROUTES,
    *BULK_ROUTES,
    *INTEREST_ROUTES,
    *LISTEN_ROUTES,
    *MCP_ROUTES,
    *PULL_ROUTES,
    *SESSION_ROUTES,
    *SOURCE_ROUTES,
    *EXPLAIN_ROUTES,
)
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
    "<p>An error is <code>application/problem+json</code>. Its <code>code</code> is stable: let"
    " programs branch on it. <code>position</code> locates the error in the input.</p>"
    "<table><tr><th>code</th><th>status</th><th>what to do</th></tr>{}</table>"
)
_INTRO = mark_safe(
    '<p>All operations of <a href="/docs/openapi.json">the OpenAPI document</a>.'
    ' <a href="/docs/errors">The list of errors</a> explains each code.'
    ' <a href="/docs/asyncapi.json">The AsyncAPI document</a> has the messages of websockets and'
    " server-sent events.</p>"
)


def add_routes(
    result: dict[str, Any], generator: SchemaGenerator, request: Any, public: bool
) -> dict[str, Any]:
    """Add the hot routes to the document; a postprocessing hook of drf-spectacular.

    Raises RuntimeError for a type that has the name of a serializer with other fields.
    """
    schemas = result["components"]["schemas"]
    result["components"]["securitySchemes"] = SCHEMES
    for route in _HOT_ROUTES:
        result["paths"].setdefault(route.path, {})[route.method.lower()] = route.operation()
        for name, schema in route.schemas().items():
            known = schemas.setdefault(name, schema)
            if known.get("properties", {}).keys() != schema.get("properties", {}).keys():
                raise RuntimeError(f"Two schemas with different fields have the name {name}.")
    for _, _, operation in _operations(result):
        operation.setdefault("security", [])  # explicit also where no credentials are needed
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


@functools.cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document; it is the same for every caller."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


@functools.cache
def document_text() -> str:
    """Return the document as it is served and versioned: sorted and indented."""
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(document(), option=options).decode() + "\n"


@read_only
def openapi_json(request: HttpRequest) -> HttpResponse:
    """Serve `/docs/openapi.json`."""
    return HttpResponse(document_text(), content_type="application/json")


@read_only
def api_page(request: HttpRequest) -> HttpResponse:
    """Serve `/docs/api`: every operation with its errors, as HTML."""
    parts = [_operation_html(*found) for found in _operations(document())]
    return HttpResponse(_page("EventHub API", [_INTRO, *parts]))


@read_only
def errors_page(request: HttpRequest) -> HttpResponse:
    """Serve `/docs/errors`: every error code with its status and remedy; a code is an anchor."""
    rows = format_html_join(
        "",
        '<tr id="{0}"><td><code>{0}</code></td><td>{1}</td><td>{2}</td></tr>',
        ((error.code, error.status, error.__doc__) for error in all_errors()),
    )
    return HttpResponse(_page("EventHub errors", [format_html(_ERRORS, rows)]))


def all_errors() -> list[type[errors.EventHubError]]:
    """Return every error class, by status and code."""
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
    """Render codes as links to their explanations; escape everything else."""
    codes = re.findall(r"`(\w+)`", text)
    links = format_html_join(", ", '<a href="/docs/errors#{0}"><code>{0}</code></a>', zip(codes))
    return links if codes else format_html("{}", text)


def _page(title: str, parts: list[SafeString]) -> str:
    body = format_html_join("", "{}", ((part,) for part in parts))
    return format_html(_PAGE, title, _STYLE, body)
