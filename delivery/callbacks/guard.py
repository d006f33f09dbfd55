"""Connects to endpoints, and to no address that may not be called. Plain module.

The check stands where the socket for one address is made, so that literal addresses, every address
of a name, and names that change between two look-ups all pass it, and what was checked is what is
connected to.
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
from registrations.endpoints.addresses import CallbackAddresses

Info = tuple[Any, ...]  # of getaddrinfo
P = TypeVar("P", bound=asyncio.Protocol)
_SECOND_ADDRESS_S = 0.25  # RFC 8305: the next address is tried beside one that keeps silent


class Place(NamedTuple):
    """Where a URL leads to."""

    host: str  # as in the URL, an IPv6 address without brackets
    port: int
    tls: bool


class AddressRefused(OSError):
    """A callback to this address is not allowed."""


class Guard:
    """The rules, and the names looked up lately."""

    def __init__(self, addresses: CallbackAddresses) -> None:
        self._addresses = addresses
        self._tls = ssl.create_default_context()
        self._looked_up: dict[str, tuple[float, asyncio.Future[list[Info]]]] = {}
        # The event loop's own few threads would be taken by a few dead names for as long as a name
        # server keeps silent.
        self._threads = ThreadPoolExecutor(
            limits.CALLBACK_DNS_THREADS_MAX, thread_name_prefix="callback-dns"
        )

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def connect(self, place: Place, protocol: Callable[[], P]) -> P:
        """A connection with the protocol on it. Raises OSError (AddressRefused, socket.gaierror,
        ssl.SSLError among them) and UnicodeError; the caller bounds the time.
        """
        loop = asyncio.get_running_loop()
        infos = [(*info[:4], (info[4][0], place.port, *info[4][2:]))
                 for info in await self._look_up(place.host)]  # fmt: skip
        connected = await aiohappyeyeballs.start_connection(
            infos,
            happy_eyeballs_delay=_SECOND_ADDRESS_S,
            socket_factory=partial(self._make_socket, place),
        )
        _, made = await loop.create_connection(
            protocol,
            sock=connected,
            ssl=self._tls if place.tls else None,
            server_hostname=place.host if place.tls else None,
        )
        return made

    def _make_socket(self, place: Place, info: Info) -> socket.socket:
        """For one address, just before it is connected to."""
        family, kind, protocol, _, address = info
        if not self._addresses.allowed(address[0], place.host, place.port):
            # the same words for all addresses of a name, or several become another error
            raise AddressRefused(f"{place.host} leads to an address that may not be called")
        return socket.socket(family=family, type=kind, proto=protocol)

    async def _look_up(self, host: str) -> list[Info]:
        """The addresses of a name; one look-up serves all who ask within a few seconds."""
        now_s = time.monotonic()
        known = self._looked_up.get(host)
        if known is None or known[0] < now_s:
            self._forget(now_s)
            looking = asyncio.get_running_loop().run_in_executor(self._threads, _addresses, host)
            known = now_s + limits.CALLBACK_DNS_S_MAX, looking
            self._looked_up[host] = known
            looking.add_done_callback(partial(self._looked, host))
        return await asyncio.shield(known[1])

    def _looked(self, host: str, looking: "asyncio.Future[list[Info]]") -> None:
        """A failure is not remembered."""
        if looking.cancelled() or looking.exception() is not None:
            self._looked_up.pop(host, None)

    def _forget(self, now_s: float) -> None:
        if len(self._looked_up) >= limits.CALLBACK_NAMES_CACHED_MAX:
            self._looked_up = {
                host: known for host, known in self._looked_up.items() if known[0] >= now_s
            }


def _addresses(host: str) -> list[Info]:
    return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
