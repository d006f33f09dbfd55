"""One OpenAPI document of the management API and the hot doors, and pages for people made from it.

The pages are plain HTML without scripts and load nothing from elsewhere.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.generators import SchemaGenerator

from delivery.sessions.table import LISTEN_DOORS
from eventhub import errors
from eventhub.access.problems import problem_response
from eventhub.doors.table import DOORS
from registrations.bulk.table import BULK_DOORS
from registrations.closure.table import CLOSURE_DOORS
from registrations.understand.table import UNDERSTAND_DOORS

_METHODS = ("get", "post", "put", "patch", "delete")
_LINK = re.compile(r"\[`(\w+)`\]\(/docs/errors#\w+\)")
_STYLE = mark_safe(
    "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:auto;padding:1rem}"
    "code{background:#eee;padding:0 .2em}table{border-collapse:collapse}"
    "td,th{border-bottom:1px solid #ccc;padding:.3em;text-align:left;vertical-align:top}"
    "h2{margin-top:2rem;font-size:1.1rem}@media(prefers-color-scheme:dark){body{background:#111;"
    "color:#ddd}code{background:#333}a{color:#8bf}}</style>"
)
_INTRO = mark_safe(
    '<p>Every operation, as in <a href="/docs/openapi.json">the OpenAPI document</a>.'
    ' Errors are explained in <a href="/docs/errors">their list</a>.</p>'
)


def add_doors(
    result: dict[str, Any], generator: SchemaGenerator, request: Any, public: bool
) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook: the doors' operations join the document.

    Raises RuntimeError for a type of theirs that is called like a serializer with other fields.
    """
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    for door in (*DOORS, *BULK_DOORS, *CLOSURE_DOORS, *LISTEN_DOORS, *UNDERSTAND_DOORS):
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


def document_text() -> str:
    """The document for people and version control: sorted and indented."""
    shown = orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(document(), option=shown).decode() + "\n"


@functools.cache
def _document_json() -> bytes:
    return orjson.dumps(document(), option=orjson.OPT_NON_STR_KEYS)


def _only_read(view: Callable[[HttpRequest], HttpResponse]) -> Callable[..., HttpResponse]:
    """Another method is a problem like everywhere, not Django's page about CSRF."""

    @csrf_exempt
    @functools.wraps(view)
    def checked(request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return view(request)
        response = problem_response(errors.MethodNotAllowed())
        response["Allow"] = "GET, HEAD"
        return response

    return checked


@_only_read
def openapi_json(request: HttpRequest) -> HttpResponse:
    """`/docs/openapi.json`"""
    return HttpResponse(_document_json(), content_type="application/json")


@_only_read
def api_page(request: HttpRequest) -> HttpResponse:
    """`/docs/api`: every operation with its errors, readable."""
    parts = [_operation_html(*found) for found in _operations(document())]
    return HttpResponse(_page("EventHub API", [_INTRO, *parts]))


@_only_read
def errors_page(request: HttpRequest) -> HttpResponse:
    """`/docs/errors`: every error with its code, status, and what to do; each code is an anchor."""
    rows = format_html_join(
        "",
        '<tr id="{}"><td><code>{}</code></td><td>{}</td><td>{}</td></tr>',
        ((error.code, error.code, error.status, _text(error)) for error in all_errors()),
    )
    table = format_html(
        "<p>An error is <code>application/problem+json</code>. Programs go by <code>code</code>,"
        " which stays; <code>position</code> says where in the input.</p>"
        "<table><tr><th>code</th><th>status</th><th>what to do</th></tr>{}</table>",
        rows,
    )
    return HttpResponse(_page("EventHub errors", [table]))


def all_errors() -> list[type[errors.EventHubError]]:
    """Every error of the tree, by status and code."""
    found = [errors.EventHubError]
    for error in found:
        found += error.__subclasses__()
    return sorted(set(found), key=lambda error: (error.status, error.code))


def _text(error: type[errors.EventHubError]) -> str:
    return " ".join((error.__doc__ or "").split())


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method in _METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def _operation_html(method: str, path: str, operation: dict[str, Any]) -> SafeString:
    answers = format_html_join(
        "",
        "<tr><td>{}</td><td>{}</td></tr>",
        (
            (status, _linked(answer.get("description", "")))
            for status, answer in sorted(operation["responses"].items(), key=lambda it: str(it[0]))
        ),
    )
    queries = ", ".join(
        item["name"] for item in operation.get("parameters", []) if item["in"] == "query"
    )
    return format_html(
        "<h2><code>{} {}</code></h2><p>{}</p>{}{}<table>{}</table>",
        method,
        path,
        " ".join(filter(None, [operation.get("summary"), operation.get("description")])),
        format_html("<p>Query: {}</p>", queries) if queries else "",
        _body_html(operation),
        answers,
    )


def _body_html(operation: dict[str, Any]) -> SafeString | str:
    content = operation.get("requestBody", {}).get("content", {})
    found = [f"{media}: {_schema_name(item.get('schema', {}))}" for media, item in content.items()]
    return format_html("<p>Body: {}</p>", "; ".join(found)) if found else ""


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
    codes = _LINK.findall(text) or re.findall(r"`(\w+)`", text)
    if not codes:
        return format_html("{}", text)
    return format_html_join(
        ", ", '<a href="/docs/errors#{}"><code>{}</code></a>', ((code, code) for code in codes)
    )


def _page(title: str, parts: list[SafeString]) -> str:
    body = format_html_join("", "{}", ((part,) for part in parts))
    return format_html(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>{}</title>{}<h1>{}</h1>{}',
        title,
        _STYLE,
        title,
        body,
    )
