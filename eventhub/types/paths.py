"""Names in paths that may contain a slash, `%2F` in the path: domains and types of events, and
components of applications. Plain module.

Servers decode a path before it is routed, so that a slash in a name becomes one between names.
Paths below PREFIXES are therefore taken from the undecoded form, with `%2F` and `%25` left in them.
"""

from typing import Any
from urllib.parse import unquote

PREFIXES = (b"/v1/types/", b"/v1/applications/")


def encoded_path(raw_path: bytes) -> str:
    """Return the decoded path, in which slashes and percent signs of names are still encoded."""
    segments = raw_path.decode("latin-1").split("/")
    return "/".join(encoded(unquote(segment)) for segment in segments)


def encoded(name: str) -> str:
    """Return the name as a segment of such a path."""
    return name.replace("%", "%25").replace("/", "%2F")


def decoded(segment: str) -> str:
    """Return the name that a segment of such a path stands for."""
    return segment.replace("%2F", "/").replace("%25", "%")


class EncodedTypePaths:
    """Passes requests to an ASGI application, with `encoded_path` for paths below PREFIXES."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        raw_path = scope.get("raw_path") or b""
        if raw_path.startswith(PREFIXES):
            scope = {**scope, "path": encoded_path(raw_path)}
        await self._app(scope, receive, send)
