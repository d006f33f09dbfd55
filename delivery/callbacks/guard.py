"""Connections to endpoints, restricted to the addresses that may be called. Plain module.

The check runs when the socket for one address is created. So it covers literal addresses, every
address of a name, and names that change between two look-ups, and the connection goes to the
address that was checked. Everything that the hub calls for a client goes through it: callbacks,
challenges, handshakes, and tokens of OAuth. What a client gives as a URL has passed
`registrations.endpoints.callback_url.valid_url` before.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

import aiohappyeyeballs

from eventhub.base import limits
from registrations.endpoints.addresses import AllowedAddresses

Info = tuple[Any, ...]  # of getaddrinfo
P = TypeVar("P", bound=asyncio.Protocol)
_SECOND_ADDRESS_S = 0.25  # RFC 8305: the next address is tried in parallel with a silent one


class Origin(NamedTuple):
    """The host, port and scheme of a URL, called for one zone."""

    host: str  # as in the URL, an IPv6 address without brackets
    port: int
    tls: bool
    zone: str  # of the endpoint: zones share no connection, since their rules differ
    context: ssl.SSLContext | None = None  # of an endpoint with certificates of its own


class AddressRefused(OSError):
    """Callbacks to this address are not allowed."""


class Guard:
    """The address rules, and a cache of resolved names."""

    def __init__(self, addresses: AllowedAddresses) -> None:
        self._addresses = addresses
        self._tls = ssl.create_default_context()
        self._resolved: dict[str, tuple[float, asyncio.Future[list[Info]]]] = {}
        # A few unresolvable names would occupy the event loop's own few threads until the name
        # server's timeout.
        self._threads = ThreadPoolExecutor(
            limits.CALLBACK_DNS_THREADS_MAX, thread_name_prefix="callback-dns"
        )

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def connect(self, origin: Origin, protocol: Callable[[], P]) -> P:
        """Return a connection with the protocol on it. Raise OSError (AddressRefused,
        socket.gaierror and ssl.SSLError among them) and UnicodeError; the caller limits the time.
        """
        loop = asyncio.get_running_loop()
        infos = [(*info[:4], (info[4][0], origin.port, *info[4][2:]))
                 for info in await self.resolve(origin.host)]  # fmt: skip
        # of addresses that refuse at once, a name with thousands would be a scan by the hub
        del infos[limits.CALLBACK_ADDRESSES_MAX :]
        connected = await aiohappyeyeballs.start_connection(
            infos,
            happy_eyeballs_delay=_SECOND_ADDRESS_S,
            socket_factory=partial(self._make_socket, origin),
        )
        _, connected_protocol = await loop.create_connection(
            protocol,
            sock=connected,
            ssl=(origin.context or self._tls) if origin.tls else None,
            server_hostname=origin.host if origin.tls else None,
        )
        return connected_protocol

    def _make_socket(self, origin: Origin, info: Info) -> socket.socket:
        """Create the socket for one address, just before it connects."""
        family, kind, protocol, _, address = info
        rules = self._addresses.of_zone(origin.zone)
        if not rules.allowed(address[0], origin.host, origin.port):
            # one text for all addresses of a name: several errors with different texts are merged
            raise AddressRefused(
                f"{origin.host} leads to a private or local address, which EVENTHUB_CALLBACK_ALLOW "
                f"does not allow for the zone {origin.zone}"
            )
        return socket.socket(family=family, type=kind, proto=protocol)

    async def resolve(self, host: str) -> list[Info]:
        """Return the addresses of a name; one look-up serves all requests of the next seconds."""
        now_s = time.monotonic()
        cached = self._resolved.get(host)
        if cached is None or cached[0] < now_s:
            self._evict_expired(now_s)
            resolution = asyncio.get_running_loop().run_in_executor(self._threads, _addresses, host)
            cached = now_s + limits.CALLBACK_DNS_S_MAX, resolution
            self._resolved[host] = cached
            resolution.add_done_callback(partial(self._on_resolved, host))
        return await asyncio.shield(cached[1])

    def _on_resolved(self, host: str, resolution: "asyncio.Future[list[Info]]") -> None:
        """Forget a failed look-up."""
        if resolution.cancelled() or resolution.exception() is not None:
            self._resolved.pop(host, None)

    def _evict_expired(self, now_s: float) -> None:
        if len(self._resolved) >= limits.CALLBACK_NAMES_CACHED_MAX:
            self._resolved = {
                host: cached for host, cached in self._resolved.items() if cached[0] >= now_s
            }


def _addresses(host: str) -> list[Info]:
    return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
