"""Connections to databases of clients: which URLs are accepted, the guarded address, and bounded
statements. SQL module.

Nothing of the hub's own environment takes part: no password file, no certificate, no unix socket.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from eventhub.base import limits
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within
from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds.kind import InputSpec

_ACCEPTED = frozenset(("host", "port", "user", "password", "dbname", "sslmode"))
_PORT = 5432
_FORM = "Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with ?sslmode=… if need be."
_ANSWER_S = limits.CONNECTOR_STATEMENT_S_MAX + 5.0  # of a statement, also from a server that hangs


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
    if not url.startswith(("postgresql://", "postgres://")):
        raise ValueError(f"This is not the URL of a PostgreSQL database. {_FORM}")
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:
        raise ValueError(f"This URL cannot be read. {_FORM}") from None
    if not set(found) <= _ACCEPTED:
        raise ValueError("Of the parameters of libpq, only `sslmode` is accepted in the URL.")
    text = {name: str(found.get(name) or "") for name in _ACCEPTED}
    if not (text["host"] and text["user"] and text["dbname"]):
        raise ValueError(f"The URL needs a user, a host and a database. {_FORM}")
    if text["host"][0] in "/@" or "," in text["host"] + text["port"]:
        raise ValueError(f"The URL has one host that is reached over TCP. {_FORM}")
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


@asynccontextmanager
async def opened(spec: InputSpec, **more: str) -> AsyncIterator[Connection]:
    """Connect to the database of a connector, read only and in autocommit mode; `more`: further
    parameters of libpq. Raises ConnectorFault, also for what psycopg raises inside the block.
    """
    target = parse_target(spec.url)
    try:
        hostaddr = await _allowed_address(spec, target)
        given: dict[str, Any] = {**_parameters(target, hostaddr), **more}
        connection = await psycopg.AsyncConnection.connect(
            autocommit=True, prepare_threshold=1, **given
        )
        try:
            yield connection
        finally:
            await connection.close()
    except psycopg.Error as error:
        raise fault_of(error) from None
    except CONNECTION_ERRORS as error:
        raise ConnectorFault("unreachable", f"The database is not reached: {error}") from None


@asynccontextmanager
async def bounded(connection: Connection) -> AsyncIterator[None]:
    """Bound the time of the statements in the block, also by a server that does not answer."""
    with answered_within(connection, _ANSWER_S):
        yield


def fault_of(error: psycopg.Error) -> ConnectorFault:
    """Return the fault that an error of psycopg means, in the server's words."""
    text = (error.diag.message_primary or str(error)).strip()
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return ConnectorFault("not_permitted", text, is_lasting=True)
    if isinstance(error, psycopg.errors.InvalidAuthorizationSpecification):
        return ConnectorFault("wrong_credentials", text)
    if isinstance(error, CONNECTION_ERRORS):
        return ConnectorFault("unreachable", f"The database is not reached: {text}")
    return ConnectorFault("statement_failed", f"The database refuses a statement: {text}")


def _parameters(target: DatabaseTarget, hostaddr: str) -> dict[str, Any]:
    settings = {
        "statement_timeout": f"{int(limits.CONNECTOR_STATEMENT_S_MAX * 1_000)}",
        "default_transaction_read_only": "on",
        "idle_in_transaction_session_timeout": "60000",
        "timezone": "UTC",
        "datestyle": "ISO",
        "jit": "off",
    }
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
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
    }


async def _allowed_address(spec: InputSpec, target: DatabaseTarget) -> str:
    """Return an address of the host that the zone may reach. Raises ConnectorFault, OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        target.host, target.port, type=socket.SOCK_STREAM
    )
    for _, _, _, _, address in found[: limits.CALLBACK_ADDRESSES_MAX]:
        hostaddr = str(address[0])
        if spec.addresses.allowed(hostaddr, target.host, target.port):
            return hostaddr
    raise ConnectorFault(
        "address_refused",
        f"{target.host} leads to a private or local address, which EVENTHUB_CALLBACK_ALLOW does"
        " not allow for this zone.",
        is_lasting=True,
    )
