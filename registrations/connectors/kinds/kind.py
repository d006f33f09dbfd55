"""The form of a kind of connector: its settings, its usual map, and how it reads. Plain module."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from registrations.connectors.rows import InputBatch
from registrations.endpoints.addresses import CallbackAddresses
from registrations.sources.mapping import SourceMap


class InputSpec(NamedTuple):
    """What a connector reads. `url`: with its credentials; `settings`: of the kind's type;
    `addresses`: those that the zone may reach.
    """

    connector_id: int
    url: str
    settings: Any
    addresses: CallbackAddresses


class ConnectorInput(Protocol):
    """What a kind reads from, while it is open. Every method raises ConnectorFault."""

    async def start(self) -> str:
        """Return the position from which a connector reads that has none."""
        ...

    async def read(self, position: str) -> InputBatch:
        """Return the next rows after a position, at most CONNECTOR_ROWS_AT_ONCE. Without new rows,
        return after some time.
        """
        ...

    async def lag(self, position: str) -> int | None:
        """Return how many rows there are after a position, CONNECTOR_LAG_ROWS_MAX at most; None:
        not known yet.
        """
        ...


class ConnectorKind(NamedTuple):
    """A kind of connector. `usual`: its map, for the fields that a connector does not map;
    `address`: returns the address in a URL without credentials, and raises ValueError with a
    message; `open` connects and checks that everything is there that it needs: it raises
    ConnectorFault.
    """

    name: str
    summary: str
    settings: type[Struct]
    usual: SourceMap
    address: Callable[[str], str]
    open: Callable[[InputSpec], AbstractAsyncContextManager[ConnectorInput]]
