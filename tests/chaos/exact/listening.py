"""A websocket listener that names a registration, from a cursor before its start to its end."""

import asyncio
from typing import Any

import aiohttp
import orjson

from tests.chaos.exact.flow import STREAM

RECONNECT_S = 0.05


class Listening:
    """A listener. `run` returns when the hub reports the end of the registration. `seen`: sequences
    in the order of their frames.
    """

    def __init__(self, url: str, registration: int, place: tuple[str, int]) -> None:
        self.seen: list[int] = []
        self.problems: list[str] = []
        self.began = asyncio.Event()
        self.connections = 0
        self._url = f"{url}/v1/ws"
        self._registration = registration
        self._place = place
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._ended = False

    async def run(self, http: aiohttp.ClientSession) -> None:
        while not self._ended:
            async with http.ws_connect(self._url, max_msg_size=0, compress=0) as socket:
                self._socket = socket
                self.connections += 1
                await socket.send_json(self._request())
                async for message in socket:
                    self._take(orjson.loads(message.data))
                    if self._ended:
                        break
            self._socket = None
            await asyncio.sleep(RECONNECT_S)

    async def drop(self) -> None:
        """End the connection; `run` resumes from the cursor and then sets `began` again."""
        self.began.clear()
        if self._socket is not None:
            await self._socket.close()

    def _request(self) -> dict[str, Any]:
        segment, sequence = self._place
        return {
            "op": "listen",
            "listener": "exact",
            "stream": STREAM,
            "from": {"segment": segment, "sequence": sequence} if segment else "oldest",
            "registrations": [self._registration],
        }

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["op"] == "event":
            self._follows(frame["prev"])
            self._place = (frame["segment"], frame["sequence"])
            self.seen.append(frame["sequence"])
            if frame["registrations"] != [self._registration]:
                self.problems.append(f"frame {frame['sequence']} names {frame['registrations']}")
        elif frame["op"] == "listening":
            self._place = (frame["cursor"]["segment"], frame["cursor"]["sequence"])
            self.began.set()
        elif frame["op"] == "ping" and (place := frame["positions"].get("exact")):
            self._follows(place["prev"])
            self._place = (place["segment"], place["sequence"])
        elif frame["op"] == "error":
            self._ended = True
            if frame["code"] != "unknown_registration":
                self.problems.append(f"the listen ended with {frame}")

    def _follows(self, prev: int) -> None:
        if prev != self._place[1]:
            self.problems.append(f"knows {self._place[1]}, but the next frame follows {prev}")
