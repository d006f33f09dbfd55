"""Databases of clients: which URLs are accepted, and connections to an address that the zone may
reach. SQL module.

Nothing of the hub's own environment takes part: no password file, no certificate, no unix socket.
"""

import asyncio
import os
import re
import socket
import ssl
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from eventhub.base import limits
from eventhub.postgresql.connections import Connection, sever
from registrations.endpoints.addresses import (
    CallbackAddresses,
    Resolve,
    is_name,
    plain_address,
    resolved,
)

_ACCEPTED = frozenset(("host", "port", "user", "password", "dbname", "sslmode"))
# at least if the server wants it so, which need only ask for the password in clear to get it
_UNENCRYPTED = ("disable", "allow", "prefer")
_SSLMODES = (*_UNENCRYPTED, "require", "verify-ca", "verify-full")
_REFUSED_IN_CLEAR = "server requested a cleartext password"  # libpq, because of `require_auth`
_IN_CLEAR = (
    "the server requested a cleartext password, which is sent through TLS alone: add"
    " ?sslmode=require to the URL, or verify-full"
)
_PORT = 5432
_PORT_FORM = re.compile(r"[0-9]{1,5}")
_RECEIVED = struct.Struct("=128xQ")  # the bytes that were received, in Linux's `struct tcp_info`
_FORM = "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with ?sslmode=… if need be."


class PrivateDatabase(Exception):
    """The host leads to an address that the zone may not reach."""


class DatabaseTarget(NamedTuple):
    """The parts of a URL."""

    host: str
    port: int
    user: str
    password: str
    dbname: str
    sslmode: str

    @property
    def places(self) -> tuple[tuple[str, int]]:
        return ((self.host, self.port),)


def parse_target(url: str) -> DatabaseTarget:
    """Return the parts of the URL of a database. Raises ValueError with a message that has nothing
    of the URL.
    """
    target = parsed(url, _FORM)
    if not target.user:
        raise ValueError(f"The URL needs a user, a host and a database. {_FORM}")
    return target


def parsed(url: str, form: str) -> DatabaseTarget:
    """Return the parts of a URL, with a user or without. `form`: of a URL, for refusals. Raises
    ValueError as `parse_target`.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError(f"This is not the URL of a PostgreSQL database. {form}")
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:
        raise ValueError(f"This URL cannot be read. {form}") from None
    if not set(found) <= _ACCEPTED:
        raise ValueError("Of the parameters of libpq, only `sslmode` is accepted in the URL.")
    text = {name: str(found.get(name) or "") for name in _ACCEPTED}
    if not (text["host"] and text["dbname"]):
        raise ValueError(f"The URL needs a host and a database. {form}")
    if text["host"][0] in "/@" or "," in text["host"] + text["port"]:
        raise ValueError(f"The URL has one host that is reached over TCP. {form}")
    if not is_name(text["host"]) and plain_address(text["host"]) is None:
        raise ValueError(
            f"The host is a name of letters, digits and hyphens, or an address. {form}"
        )
    port = text["port"] or str(_PORT)
    if not (_PORT_FORM.fullmatch(port) and 0 < int(port) < 1 << 16):
        raise ValueError("A port is a number from 1 to 65,535.")
    sslmode = text["sslmode"] or "prefer"
    if sslmode not in _SSLMODES:
        raise ValueError(f"`sslmode` is one of {', '.join(_SSLMODES)}.")
    return DatabaseTarget(
        text["host"], int(port), text["user"], text["password"], text["dbname"], sslmode
    )


def address_of(url: str) -> str:
    """Return the host, port and database of a URL. Raises ValueError as `parse_target`."""
    target = parse_target(url)
    return f"{target.host}:{target.port}/{target.dbname}"


async def connect_to(
    target: DatabaseTarget,
    addresses: CallbackAddresses,
    settings: Mapping[str, str],
    resolve: Resolve = resolved,
    **more: Any,
) -> Connection:
    """Connect in autocommit mode. `settings`: of the session; `more`: further parameters of libpq
    and psycopg. Raises PrivateDatabase, OSError, and what psycopg raises.
    """
    hostaddr = _allowed_address(target, addresses, await resolve(target.host))
    given: dict[str, Any] = {**_parameters(target, hostaddr, settings), **more}
    try:
        return await psycopg.AsyncConnection.connect(autocommit=True, **given)
    except psycopg.OperationalError as error:
        if _REFUSED_IN_CLEAR in str(error):
            raise psycopg.OperationalError(_IN_CLEAR) from None
        raise


def _parameters(
    target: DatabaseTarget, hostaddr: str, settings: Mapping[str, str]
) -> dict[str, Any]:
    session = {"timezone": "UTC", "datestyle": "ISO", "jit": "off", **settings}
    trusted = None
    if target.sslmode.startswith("verify-"):  # with the others libpq would verify as well
        trusted = ssl.get_default_verify_paths().cafile
    return {
        **target._asdict(),
        "hostaddr": hostaddr,
        "passfile": "/dev/null",
        "sslcert": "/dev/null/none",
        "sslkey": "/dev/null/none",
        "sslrootcert": trusted or "/dev/null/none",
        "gssencmode": "disable",
        **({"require_auth": "!password"} if target.sslmode in _UNENCRYPTED else {}),
        "application_name": "eventhub",
        "connect_timeout": limits.CONNECT_TIMEOUT_S,
        "keepalives_idle": 15,
        "options": " ".join(f"-c {name}={value}" for name, value in session.items()),
    }


def _allowed_address(
    target: DatabaseTarget, addresses: CallbackAddresses, found: Iterable[tuple[Any, ...]]
) -> str:
    """Return an address of the host that the zone may reach. Raises PrivateDatabase."""
    for _, _, _, _, address in islice(found, limits.CALLBACK_ADDRESSES_MAX):
        hostaddr = str(address[0])
        if addresses.allowed(hostaddr, target.host, target.port):
            return hostaddr
    raise PrivateDatabase(
        f"{target.host} leads to a private or local address, which EVENTHUB_CALLBACK_ALLOW does"
        " not allow for this zone."
    )


@contextmanager
def answered_shortly(connection: Connection, bytes_max: int) -> Iterator[None]:
    """End the connection if the server sends more than so many bytes during the block, since libpq
    keeps all that comes until an answer is complete; then raise psycopg.DataError.
    """
    loop = asyncio.get_running_loop()
    most = _received(connection) + bytes_max
    is_severed = False
    timer: asyncio.TimerHandle

    def look() -> None:
        nonlocal is_severed, timer
        if connection.closed:
            return
        if _received(connection) > most:
            is_severed = True
            sever(connection)
        else:
            timer = loop.call_later(limits.SINK_ANSWER_LOOK_S, look)

    timer = loop.call_later(limits.SINK_ANSWER_LOOK_S, look)
    try:
        yield
    except psycopg.OperationalError:
        if is_severed:
            message = f"The server's answer has more than {bytes_max:,} bytes."
            raise psycopg.DataError(message) from None
        raise
    finally:
        timer.cancel()


def _received(connection: Connection) -> int:
    """Return how many bytes came on a TCP connection."""
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as same:
        info = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.size)
    [received] = _RECEIVED.unpack(info)
    return int(received)
