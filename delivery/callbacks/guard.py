"""The HTTP session of the callbacks: no address is connected to that may not be called.

The check stands where the socket for one address is made, so that literal addresses, every address
of a name, and names that change between two look-ups all pass it, and what was checked is what is
connected to. No redirects, proxies or cookies. aiohttp, no database.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from eventhub import limits
from registrations.endpoints.addresses import CallbackAddresses

# The host and port of the URL that the current task is about to call.
calling: ContextVar[tuple[str, int]] = ContextVar("calling")


class AddressRefused(OSError):
    """A callback to this address is not allowed."""


class Guard:
    """Makes sockets for allowed addresses only."""

    def __init__(self, addresses: CallbackAddresses) -> None:
        self._addresses = addresses

    def make_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """aiohttp's socket factory; `info` is a tuple of getaddrinfo, whose last part is connected
        to. Raises AddressRefused.
        """
        family, kind, protocol, _, address = info
        host, port = calling.get()
        if not self._addresses.allowed(address[0], host, port):
            # the same words for all addresses of a name, or aiohttp makes another error of several
            raise AddressRefused(f"{host} leads to an address that callbacks may not go to")
        made = socket.socket(family=family, type=kind, proto=protocol)
        made.setblocking(False)
        return made


class Resolver(AbstractResolver):
    """getaddrinfo in threads of its own: the event loop's few would be taken by a few dead names
    for as long as a name server keeps silent.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(
            limits.CALLBACK_DNS_THREADS_MAX, thread_name_prefix="callback-dns"
        )

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        infos = await loop.run_in_executor(
            self._threads, _look_up, host, port, socket.AddressFamily(family)
        )
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=found,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found, _, protocol, _, address in infos
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[Any]:
    return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)


def open_session(addresses: CallbackAddresses, resolver: AbstractResolver) -> aiohttp.ClientSession:
    """A session for `async with`. The number of connections is bounded by the slots."""
    connector = aiohttp.TCPConnector(
        limit=0,
        resolver=resolver,
        socket_factory=Guard(addresses).make_socket,
        ttl_dns_cache=limits.CALLBACK_DNS_S_MAX,
        keepalive_timeout=limits.CALLBACK_KEEP_ALIVE_S,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(
            total=limits.CALLBACK_TIMEOUT_S_MAX,
            sock_connect=limits.CALLBACK_CONNECT_TIMEOUT_S_MAX,
        ),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        max_line_size=limits.CALLBACK_HEADERS_BYTES_MAX,
        max_field_size=limits.CALLBACK_HEADERS_BYTES_MAX,
        max_headers=limits.CALLBACK_HEADERS_COUNT_MAX,
    )
