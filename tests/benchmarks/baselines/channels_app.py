"""Channels' in-memory `group_send`: a consumer in a group, and a POST that sends each of its events
to the group.
"""

import json
import os
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.baselines.django_settings"

import django

django.setup()

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.layers import get_channel_layer  # noqa: E402

from tests.benchmarks.baselines.asgi import (  # noqa: E402
    Receive,
    Scope,
    Send,
    answer,
    lifespan,
    read_body,
)

GROUP = "events"


class Listener(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def connect(self) -> None:
        await self.channel_layer.group_add(GROUP, self.channel_name)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard(GROUP, self.channel_name)

    async def event_message(self, message: dict[str, Any]) -> None:
        await self.send(text_data=message["text"])


_listener = Listener.as_asgi()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    elif scope["type"] == "websocket":
        await _listener(scope, receive, send)
    else:
        layer = get_channel_layer()
        for event in json.loads(await read_body(receive) or b"[]"):
            text = json.dumps(event)  # once for all sockets
            await layer.group_send(GROUP, {"type": "event.message", "text": text})
        await answer(send)
