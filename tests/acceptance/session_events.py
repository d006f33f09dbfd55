"""Server-sent events of consumer sessions for the acceptance tests."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.acceptance.documented_messages import documented
from tests.acceptance.transports import Refused
from tests.acceptance.wire import HEAR_TIMEOUT_S, Session
from tests.live import LiveHub

END = {"op": "end"}


class SessionEvents(Session):
    """One response, message by message, each with its `id`; END after the last."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self.skipped = []
        self._content = content

    async def hear(self) -> dict[str, Any]:
        fields: dict[str, str] = {}
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            async for line in self._content:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    message = documented(json.loads(fields["data"]), "sessionEvents")
                    return {**message, "id": fields.get("id")}
                else:
                    fields = {}
        return END


@asynccontextmanager
async def session_events(
    hub: LiveHub, key: str = "", name: str = "s", *, web: int = 0, token: str = "", **headers: str
) -> AsyncIterator[SessionEvents]:
    """Connect a session, by its name or its id, and receive `connected`. Raises Refused."""
    url = f"{hub.web[web].url}/v1/sessions/{name}/events"
    sent = {"Accept": "text/event-stream", **headers}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    query = {"access_token": token} if token else {}
    async with (
        aiohttp.ClientSession() as http,
        http.get(url, params=query, headers=sent) as response,
    ):
        if response.status != 200:
            assert response.content_type == "application/problem+json"
            raise Refused(await response.json())
        assert response.content_type == "text/event-stream"
        reader = SessionEvents(response.content)
        connected = await reader.hear()
        assert connected["op"] == "connected"
        assert connected["session"] == name or name.isdigit()
        reader.skipped.append(connected)
        yield reader


def started(reader: SessionEvents) -> dict[str, int]:
    """Return the sequences of the cursors at which the streams of a session started."""
    streams = reader.skipped[0]["streams"]
    return {each["stream"]: each["cursor"]["sequence"] for each in streams}
