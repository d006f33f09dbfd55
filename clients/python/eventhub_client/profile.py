"""The part of a client that outlives its connections (FOX 6.1): its applications, its interests,
and the hub and address of its last connection. Plain module.
"""

import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class Profile(NamedTuple):
    """Stored with the queue of an outbox (FOX-49)."""

    application: tuple[str, ...] = ()  # given to events that name none (FOX-03)
    interests: tuple[dict[str, Any], ...] = ()  # in the client's own form, such as its filters
    incarnation: int = 0  # starts and reconnections of this outbox so far (FOX-51)
    node: str = ""  # the URL of the hub at the last contact
    address: str = ""  # the hub's address and port
    ip: str = ""  # our address on the route to the hub
    previous_ip: str = ""

    def attached(self, node: str, address: str, ip: str) -> "Profile":
        """Return the profile after a contact with a hub from an address."""
        previous = self.ip if self.ip and self.ip != ip else self.previous_ip
        return self._replace(node=node, address=address, ip=ip, previous_ip=previous)


def addresses(url: str) -> tuple[str, str]:
    """Return the address and port of a URL's host, and our address on the route to it.

    Sends nothing. Blocks while the name is resolved; raises OSError if it cannot be.
    """
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 80)
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        host = str(address[0])
        return f"{host}:{port}", str(probe.getsockname()[0])
