"""The official MCP client, loaded by the first test that uses it: each process that collects the
tests would load it, in half a second.
"""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest

from tests.live import LiveHub

if TYPE_CHECKING:
    from tests.acceptance.mcp_client import McpClient

EVENTS = "io.modelcontextprotocol/events"


def connected(
    hub: LiveHub, key: str, mode: str = "auto"
) -> "AbstractAsyncContextManager[McpClient]":
    """Return a client of the hub's MCP server with a key."""
    from tests.acceptance import mcp_client

    return mcp_client.connected(hub, key, mode)


def refused() -> "pytest.RaisesExc[Any]":
    """Expect that a request is refused."""
    from mcp.shared.exceptions import MCPError

    return pytest.raises(MCPError)
