"""What of a client outlives its connections (FOX 6.1): what it is, what interests it, where it was
attached last, from which address. Plain module.
"""

import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class Profile(NamedTuple):
    """Kept beside the queue of an outbox (FOX-49)."""

    application: tuple[str, ...] = ()  # given to events that name none (FOX-03)
    interests: tuple[dict[str, Any], ...] = ()  # the client's own words, such as its listens
    incarnation: int = 0  # starts and reconnections of this outbox so far (FOX-51)
    node: str = ""  # the hub's URL, as it was last reached
    address: str = ""  # the address and port that the URL meant
    ip: str = ""  # our own address towards it
    previous_ip: str = ""

    def attached(self, node: str, address: str, ip: str) -> "Profile":
        """After a contact: where, and from where."""
        previous = self.ip if self.ip and self.ip != ip else self.previous_ip
        return self._replace(node=node, address=address, ip=ip, previous_ip=previous)


def addresses(url: str) -> tuple[str, str]:
    """The address and port that a URL means, and our own address on the way there.

    Nothing is sent. Raises OSError when the name is not known. Blocks while it is looked up.
    """
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 80)
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        host = str(address[0])
        return f"{host}:{port}", str(probe.getsockname()[0])
