"""The receivers of callbacks on this machine that a hub with the demo may call. Plain module.

The demo's zone may call loopback, so that a webhook can be tried without a public address. Anybody
with a key of that zone could then reach the services of this machine, so it is allowed only while
the hub itself listens on loopback and has a database of its own.
"""

import ipaddress
import socket

from eventhub.access.credentials import ZONE

LOOPBACK = ("127.0.0.0/8", "::1")


def allows_loopback(hub: socket.socket, *, embedded: bool) -> bool:
    """Return whether the demo's zone may call loopback. `embedded`: the hub runs its own
    PostgreSQL, so no other hub serves the zone.
    """
    return embedded and ipaddress.ip_address(hub.getsockname()[0]).is_loopback


def allowed(given: str, sink: socket.socket, *, loopback: bool) -> str:
    """Return EVENTHUB_CALLBACK_ALLOW: the operator's entries, and for the demo's zone loopback, or
    else only the demo's own receiver.
    """
    host, port = sink.getsockname()[:2]
    addresses = LOOPBACK if loopback else (f"{host}:{port}",)
    return ",".join(filter(None, (given, *(f"{ZONE}={address}" for address in addresses))))
