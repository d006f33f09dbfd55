"""HTTP requests to the hub: JSON in and out, refusals as exceptions. Plain module."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
import orjson

from eventhub_client.errors import refusal
from eventhub_client.types import NOTHING, Caused, Cursor, Reply

JSON = "application/json"


class Request(NamedTuple):
    """A request; `path` begins with /v1 and is quoted."""

    method: str
    path: str
    body: bytes | None = None
    query: Mapping[str, str] = NOTHING
    headers: Mapping[str, str] = NOTHING


class Answer(NamedTuple):
    """A successful answer."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return orjson.loads(self.body) if self.body else None

    def reply(self) -> Reply:
        """Return the reply with the sequences in the headers of the management API."""
        segment = self.headers.get("EventHub-Segment", "")
        sequence = self.headers.get("EventHub-Sequence", "")
        return Reply(
            self.json,
            self.headers.get("ETag", "").strip('"'),
            Cursor(segment, int(sequence)) if segment and sequence else None,
            _caused(segment, self.headers.get("EventHub-Caused", "")),
            self.headers.get("EventHub-Action", ""),
        )


class Http:
    """The hub at a URL; `session` carries the credential. With `zone`, which only an operator may
    choose, each request is for that zone.
    """

    def __init__(self, session: aiohttp.ClientSession, base_url: str, zone: str = "") -> None:
        self.session = session
        self.base_url = base_url
        self.zone = zone

    def in_zone(self, zone: str) -> "Http":
        """Return the same connection for another zone; empty: the credential's."""
        return Http(self.session, self.base_url, zone)

    async def items(self, path: str) -> list[dict[str, Any]]:
        """Return the items of a list, of all its pages."""
        items: list[dict[str, Any]] = []
        query: dict[str, str] = {}
        while True:
            found = (await self.ask(Request("GET", path, query=query))).json
            items += found["items"]
            if not found.get("next"):
                return items
            query = {"after": str(found["next"])}

    async def ask(self, request: Request, *, timeout_s: float | None = None) -> Answer:
        """Send a request. Raises HubProblem for a refusal, aiohttp's errors without an answer."""
        headers = dict(request.headers)
        if request.body is not None:
            headers.setdefault("Content-Type", JSON)
        query = {**request.query, "zone": self.zone} if self.zone else request.query
        more: dict[str, Any] = {}
        if timeout_s is not None:
            more["timeout"] = aiohttp.ClientTimeout(total=timeout_s)
        async with self.session.request(
            request.method,
            self.base_url + request.path,
            params=query or None,
            data=request.body,
            headers=headers,
            **more,
        ) as response:
            await refuse(response)
            return Answer(await response.read(), response.headers)


async def refuse(response: aiohttp.ClientResponse) -> None:
    """Raise HubProblem unless the response is a success."""
    if response.status >= 400:
        problem = {"status": response.status, **_problem(await response.read())}
        raise refusal(problem, retry_after_s=retry_after_s(response.headers))


def stream_path(stream: str, *rest: str) -> str:
    """Return the path of a stream's resource: `stream_path("a", "events")`."""
    return "/".join(("/v1/streams", *(quote(part, safe="") for part in (stream, *rest))))


def _problem(body: bytes) -> dict[str, Any]:
    """Return the problem document; empty if something else answered, such as a proxy."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}


def retry_after_s(headers: Mapping[str, str] | None) -> float | None:
    """Return the pause that an answer names."""
    text = (headers or {}).get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _caused(segment: str, text: str) -> Caused | None:
    first, _, last = text.partition("-")
    return Caused(segment, int(first), int(last or first)) if first else None
