"""Connections of connectors to databases of clients: read-only, with bounded statements, and with
faults in the server's words. SQL module.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from eventhub.base import limits
from eventhub.postgresql.connections import CONNECTION_ERRORS, Connection, answered_within
from registrations.client_databases import (
    PrivateDatabase,
    answered_shortly,
    connect_to,
    parse_target,
)
from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds.kind import InputSpec

_ANSWER_S = limits.CONNECTOR_STATEMENT_S_MAX + 5.0  # of a statement, also from a server that hangs
# the first rows always fit: 20 of 2 MiB each, and their bodies in hexadecimal digits
_ANSWER_BYTES = 16 * limits.CONNECTOR_BATCH_BYTES
_SESSION = {
    "statement_timeout": f"{int(limits.CONNECTOR_STATEMENT_S_MAX * 1_000)}",
    "default_transaction_read_only": "on",
    "idle_in_transaction_session_timeout": "60000",
}


@asynccontextmanager
async def opened(spec: InputSpec, **more: str) -> AsyncIterator[Connection]:
    """Connect to the database of a connector, read only and in autocommit mode; `more`: further
    parameters of libpq. Raises ConnectorFault, also for what psycopg raises inside the block.
    """
    target = parse_target(spec.url)
    try:
        given: dict[str, Any] = {"prepare_threshold": 1, **more}
        connection = await connect_to(target, spec.addresses, _SESSION, **given)
        try:
            yield connection
        finally:
            await connection.close()
    except PrivateDatabase as error:
        raise ConnectorFault("address_refused", str(error), is_lasting=True) from None
    except psycopg.Error as error:
        raise fault_of(error) from None
    except CONNECTION_ERRORS as error:
        raise ConnectorFault("unreachable", f"The database is not reached: {error}") from None


@asynccontextmanager
async def bounded(connection: Connection) -> AsyncIterator[None]:
    """Bound the time of the statements in the block, also by a server that does not answer, and
    the size of their answers.
    """
    with answered_within(connection, _ANSWER_S), answered_shortly(connection, _ANSWER_BYTES):
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
