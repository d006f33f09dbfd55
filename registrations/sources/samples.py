"""What is kept of a request as a sample: secrets are left out, and sizes are bounded.
Plain module.
"""

from collections.abc import Iterable
from urllib.parse import parse_qsl, urlencode

from eventhub.base import limits
from registrations.sources.received import ReceivedRequest

REDACTED = "(not shown)"
_SECRET_HEADERS = frozenset(
    (
        *("authorization", "proxy-authorization", "cookie", "set-cookie"),
        *("api-key", "apikey", "x-api-key", "x-auth-token", "x-access-token", "x-gitlab-token"),
    )
)


def shown_headers(headers: dict[str, str], hidden: Iterable[str]) -> dict[str, str]:
    """Return the headers without secret values, up to a size in all; the rest is left out."""
    secret = _SECRET_HEADERS.union(hidden)
    found: dict[str, str] = {}
    left = limits.SOURCE_HEADERS_BYTES_MAX
    for name, value in headers.items():
        shown = REDACTED if name in secret else value.replace("\0", "")
        left -= len(name) + len(shown)
        if left < 0:
            break
        found[name] = shown
    return found


def shown_query(query: str, hidden: Iterable[str]) -> str:
    """Return the query without secret values, up to a size."""
    secret = _SECRET_HEADERS.union(hidden)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return ""
    shown = [(name, REDACTED if name.lower() in secret else value) for name, value in pairs]
    return urlencode(shown)[: limits.SOURCE_HEADERS_BYTES_MAX]


def kept_body(request: ReceivedRequest) -> bytes:
    """Return the beginning of the body."""
    return request.body[: limits.SOURCE_SAMPLE_BYTES_MAX]
