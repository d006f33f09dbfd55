"""The origins whose pages may open a websocket, or talk to the MCP server. A browser names the
origin of the page in each handshake, and asks nobody: unlike for other requests, the hub has to
check it. Programs that are no browsers send none. Plain module.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

from eventhub.base.errors import OriginNotAllowed
from eventhub.http.messages import Headers

_PORTS = {"http": 80, "https": 443}


class Origins(NamedTuple):
    """`listed`: origins, `*` for all; the host of one may begin with `*.`. `hosts`: names under
    which the hub is reached, as in EVENTHUB_ALLOWED_HOSTS.
    """

    listed: tuple[str, ...]
    hosts: tuple[str, ...]

    def require(self, headers: Headers) -> None:
        """Raise OriginNotAllowed for a page that is neither the hub's own nor of a listed origin.

        The own origin is the one to which the handshake is addressed, under a name of the hub: a
        foreign name that leads to the hub's address (DNS rebinding) is none.
        """
        host = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
        for name, value in headers:
            if name == b"origin" and not self._allow(value.decode("latin-1").lower(), host):
                raise OriginNotAllowed

    def _allow(self, origin: str, host: str) -> bool:
        if "*" in self.listed or any(_matches(origin, one.lower()) for one in self.listed):
            return True
        page, own = _parse(origin), _parse(f"//{host.lower()}")
        if page is None or own is None or page.scheme not in _PORTS:
            return False
        port = _PORTS[page.scheme]
        same = (page.host, page.port or port) == (own.host, own.port or port)
        return same and any(_is_host(own.host, one.lower()) for one in self.hosts)


class _Place(NamedTuple):
    scheme: str
    host: str
    port: int | None


def _parse(text: str) -> _Place | None:
    """Return the parts of an origin, or of the host of a request; None if it is malformed."""
    try:
        found = urlsplit(text)
        host, port = found.hostname, found.port
    except ValueError:
        return None
    return None if host is None else _Place(found.scheme, host, port)


def _matches(origin: str, listed: str) -> bool:
    """Return True if the origin is the listed one, or one of its subdomains for `https://*.…`."""
    scheme, wildcard, domain = listed.partition("://*.")
    if not wildcard:
        return origin == listed
    return origin.startswith(f"{scheme}://") and origin.endswith(f".{domain}")


def _is_host(host: str, allowed: str) -> bool:
    """Return True if the name is the allowed one; `.example.org` stands for its subdomains too."""
    allowed = allowed.strip("[]").rstrip(".")
    if allowed.startswith("."):
        return host == allowed[1:] or host.endswith(allowed)
    return allowed in ("*", host.rstrip("."))
