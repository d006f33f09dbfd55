"""The official MCP client, with what MCP Events add to it; tests take it from `mcp.py`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.extension import ClientExtension, NotificationBinding
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Request, Result
from pydantic import BaseModel, ConfigDict

from tests.acceptance.mcp import EVENTS
from tests.live import LiveHub

KINDS = ("active", "event", "heartbeat", "error", "terminated")


class Params(BaseModel):
    """The parameters of any message."""

    model_config = ConfigDict(extra="allow")


class AnyResult(Result):
    """The result of any method."""

    model_config = ConfigDict(extra="allow")


class AnyRequest(Request[dict[str, Any], str]):
    """A request of any method."""

    method: str
    params: dict[str, Any]


class EventsExtension(ClientExtension):
    """Collects the notifications of MCP Events: pairs of kind and parameters."""

    identifier = EVENTS

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []

    def notifications(self) -> list[NotificationBinding[Any]]:
        return [self._binding(kind) for kind in KINDS]

    def _binding(self, kind: str) -> NotificationBinding[Any]:
        async def handle(params: Params) -> None:
            self.received.append((kind, params.model_dump()))

        method = f"notifications/events/{kind}"
        return NotificationBinding(method=method, params_type=Params, handler=handle)


class McpClient:
    """A connected client."""

    def __init__(self, client: Client, events: EventsExtension) -> None:
        self.client = client
        self.events = events

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request; return its result. Raises MCPError."""
        request = AnyRequest(method=method, params=params)
        found = await self.client.session.send_request(request, AnyResult)
        return found.model_dump(by_alias=True)


@asynccontextmanager
async def connected(hub: LiveHub, key: str, mode: str = "auto") -> AsyncIterator[McpClient]:
    """Yield a client of the hub's MCP server with a key."""
    events = EventsExtension()
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{hub.url}/mcp", http_client=http)
        options: Any = {"mode": mode, "extensions": [events]}
        async with Client(transport, **options) as client:
            yield McpClient(client, events)
