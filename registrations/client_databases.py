"""Databases of clients: which URLs are accepted, and connections to an address that the zone may
reach. SQL module.

Nothing of the hub's own environment takes part: no password file, no certificate, no unix socket.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from eventhub.base import limits
from eventhub.postgresql.connections import Connection
from registrations.endpoints.addresses import CallbackAddresses

_ACCEPTED = frozenset(("host", "port", "user", "password", "dbname", "sslmode"))
_PORT = 5432
_PLACE_FORM = "Write postgresql://HOST:PORT/DATABASE, with ?sslmode=… if need be."
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


def parse_target(url: str) -> DatabaseTarget:
    """Return the parts of the URL of a database. Raises ValueError with a message that has nothing
    of the URL.
    """
    target = _parsed(url, _FORM)
    if not target.user:
        raise ValueError(f"The URL needs a user, a host and a database. {_FORM}")
    return target


def parse_place(url: str) -> DatabaseTarget:
    """Return the parts of the URL of a database without user and password. Raises ValueError as
    `parse_target`.
    """
    target = _parsed(url, _PLACE_FORM)
    if target.user or target.password:
        raise ValueError(
            "User and password do not belong into the URL but into `authentication`, which is"
            f" stored encrypted. {_PLACE_FORM}"
        )
    return target


def _parsed(url: str, form: str) -> DatabaseTarget:
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
    port = int(text["port"] or _PORT)
    if not 0 < port < 1 << 16:
        raise ValueError("A port is a number from 1 to 65,535.")
    sslmode = text["sslmode"] or "prefer"
    return DatabaseTarget(
        text["host"], port, text["user"], text["password"], text["dbname"], sslmode
    )


def address_of(url: str) -> str:
    """Return the host, port and database of a URL. Raises ValueError as `parse_target`."""
    target = parse_target(url)
    return f"{target.host}:{target.port}/{target.dbname}"


async def connect_to(
    target: DatabaseTarget, addresses: CallbackAddresses, settings: Mapping[str, str], **more: Any
) -> Connection:
    """Connect in autocommit mode. `settings`: of the session; `more`: further parameters of libpq
    and psycopg. Raises PrivateDatabase, OSError, and what psycopg raises.
    """
    hostaddr = await _allowed_address(target, addresses)
    given: dict[str, Any] = {**_parameters(target, hostaddr, settings), **more}
    return await psycopg.AsyncConnection.connect(autocommit=True, **given)


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
        "application_name": "eventhub",
        "connect_timeout": limits.CONNECT_TIMEOUT_S,
        "keepalives_idle": 15,
        "options": " ".join(f"-c {name}={value}" for name, value in session.items()),
    }


async def _allowed_address(target: DatabaseTarget, addresses: CallbackAddresses) -> str:
    """Return an address of the host that the zone may reach. Raises PrivateDatabase, OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        target.host, target.port, type=socket.SOCK_STREAM
    )
    for _, _, _, _, address in found[: limits.CALLBACK_ADDRESSES_MAX]:
        hostaddr = str(address[0])
        if addresses.allowed(hostaddr, target.host, target.port):
            return hostaddr
    raise PrivateDatabase(
        f"{target.host} leads to a private or local address, which EVENTHUB_CALLBACK_ALLOW does"
        " not allow for this zone."
    )
