"""The built console (frontend/dist), served below /console/: its files, and its single page for
every other path. Django module.

By its policy the page runs only the console's own files, and loads nothing from other origins.
"""

import re
import secrets
from pathlib import Path

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html

from eventhub.api.problems import problem_response, read_only
from eventhub.base import errors

DIST = Path(__file__).resolve().parents[2] / "frontend" / "dist"
HOME = "/console/"
NONCE = "__CSP_NONCE__"  # as frontend/vite.config.ts writes it into the page

_FILE = re.compile(r"(?:assets/)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.([a-z0-9]+)")
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}
_PAGES = "zones/"  # paths of the page, which contain names with dots, such as those of streams
_FOR_EVER = "public, max-age=31536000, immutable"  # names of assets contain a hash of the content
_NOT_BUILT = format_html(
    "<!doctype html><html lang=en><meta charset=utf-8><title>EventHub</title>"
    "<h1>The console is not built</h1><p>{}</p>"
    "<p>The API works: see <code>/docs/api</code>.</p>",
    "Run make setup in the checkout, and reload this page.",
)


@read_only
def home(request: HttpRequest) -> HttpResponse:
    """Redirect `/` and `/console` to the console."""
    return HttpResponseRedirect(HOME)


@read_only
def page(request: HttpRequest) -> HttpResponse:
    """Serve the console's page, with a new nonce for elements that it adds; never cached."""
    try:
        text = (DIST / "index.html").read_text()
    except FileNotFoundError:
        return HttpResponse(_NOT_BUILT, status=503, headers={"Cache-Control": "no-store"})
    nonce = secrets.token_urlsafe(16)
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": _policy(nonce)}
    return HttpResponse(text.replace(NONCE, nonce), headers=headers)


@read_only
def file_or_page(request: HttpRequest, path: str) -> HttpResponse:
    """Serve a file of the console by its name, 404 for a missing one; else the page, which handles
    its own paths.
    """
    named = "." in path.rpartition("/")[2] and not path.startswith(_PAGES)
    if not (path.startswith("assets/") or named):
        return page(request)
    found = _FILE.fullmatch(path)
    kind = _TYPES.get(found[1]) if found else None
    if kind is None or not (DIST / path).is_file():
        return problem_response(errors.NotFound("The console has no such file."))
    cached = _FOR_EVER if path.startswith("assets/") else "no-cache"
    headers = {"Cache-Control": cached, "Vary": "Accept-Encoding"}
    file = DIST / path
    packed = file.with_name(f"{file.name}.gz")  # made by the build
    if "gzip" in request.headers.get("Accept-Encoding", "") and packed.is_file():
        file, headers["Content-Encoding"] = packed, "gzip"
    return HttpResponse(file.read_bytes(), content_type=kind, headers=headers)


def _policy(nonce: str) -> str:
    own = f"'self' 'nonce-{nonce}'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {own}",
            f"style-src {own}",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
