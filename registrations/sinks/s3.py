"""Buckets of S3 and of servers with its API: a batch of a stream becomes an object. Plain module.

An object has the name of its first event and is only created, not replaced, so that an attempt that
is repeated finds what the one before it stored. Then it leaves out the events that the object has.
If the object has others as well, these are still pending, since results are written for a whole
object; so it is replaced by one without them, unless its events were requested again.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlsplit

import orjson
from msgspec import Meta, Struct

from eventhub.base import limits
from eventhub.base.errors import InvalidField
from registrations.endpoints.addresses import CallbackAddresses
from registrations.endpoints.callback_url import valid_url
from registrations.endpoints.retry_after import read_retry_after
from registrations.sinks.aws_signature import AccessKey, signed
from registrations.sinks.files import FORMATS
from registrations.sinks.kind import (
    SinkAnswer,
    SinkEvent,
    SinkFault,
    SinkKind,
    SinkRequest,
    SinkResponse,
    SinkSpec,
)

_PARTS = ("stream", "year", "month", "day", "hour")
_PART = re.compile(r"\{([^{}]*)\}")
_PLAIN = re.compile(r"[A-Za-z0-9._~/-]*")
_NEW = {"if-none-match": "*"}  # fails with 412 if the object exists
_CHECK = "_eventhub_check"  # readers of folders skip names that begin with `_`
_NO_TIME = "1970-01-01T00"  # of gap notices


class BucketSettings(Struct, forbid_unknown_fields=True):
    """Where objects are, and their format. `path`: the folder of an object, with the stream and the
    time of its first event in the places of `{stream}`, `{year}`, `{month}`, `{day}`, `{hour}`.
    """

    path: Annotated[
        str, Meta(max_length=limits.SINK_PATH_CHARS_MAX, pattern=r"^([!-~]([ -~]*/)?)?$")
    ] = "{stream}/{year}/{month}/{day}/"
    file: Literal["ndjson", "ndjson.gz", "parquet"] = "ndjson.gz"
    region: Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,64}$")] = "us-east-1"

    def __post_init__(self) -> None:
        unknown = set(_PART.findall(self.path)) - set(_PARTS)
        rest = _PART.sub("", self.path)
        if unknown or "{" in rest or "}" in rest or self.path.startswith("/"):
            raise ValueError(
                "A path begins without a slash, ends with one, and has no other braces than"
                f" {', '.join(f'{{{name}}}' for name in _PARTS)}"
            )


class BucketSink:
    """The bucket of one endpoint."""

    def __init__(self, spec: SinkSpec) -> None:
        given, settings = spec.authentication, spec.settings
        self._http = spec.http
        self._url = spec.url.rstrip("/")
        self._path: str = settings.path
        self._format = FORMATS[settings.file]
        self._key = AccessKey(given["access_key_id"], given["secret_access_key"], settings.region)

    async def check(self) -> str:
        """Create a small object twice: the second time has to be refused."""
        folder = self._path.partition("{")[0].rpartition("/")[0]
        name = f"{folder}/{_CHECK}" if folder else _CHECK
        for _ in range(2):
            response = await self._send("PUT", name, headers=_NEW)
            if response.status != 412 and not 200 <= response.status < 300:
                raise _refused(response)
        if response.status != 412:
            raise SinkFault(
                "rejected",
                "The server replaces an object although `If-None-Match: *` forbids it. So it could"
                " lose events; docs/sinks.md names servers that work.",
            )
        found = await self._send("GET", name)
        if found.status != 200:
            raise _refused(found)
        return f"Objects can be stored and read in {self._url}."

    async def store(self, events: Sequence[SinkEvent]) -> SinkAnswer:
        streams: dict[str, list[SinkEvent]] = {}
        folders: dict[str, str] = {}
        for event in events:
            document = orjson.loads(event.document)
            stream = document["stream"]
            folders.setdefault(stream, self._folder(document))
            streams.setdefault(stream, []).append(event)
        lines: list[str] = []
        for stream, own in streams.items():
            folder, left = folders[stream], own
            while left:
                left, line = await self._store(folder, left)
                lines.append(line)
                if left:
                    folder = self._folder(orjson.loads(left[0].document))
        return SinkAnswer(f"PUT {len(events)} events", "\n".join(lines), 200)

    def close(self) -> None:
        """Leave connections to the client, which shares them."""

    async def _store(self, folder: str, events: list[SinkEvent]) -> tuple[list[SinkEvent], str]:
        """Store events of a stream in an object; return those that it does not have, and what
        happened. Raises SinkFault.
        """
        name = folder + object_name(events[0].id) + self._format.suffix
        body = await asyncio.to_thread(self._format.write, events)
        response = await self._send("PUT", name, body, _NEW)
        if response.status != 412:
            return [], _stored(response, name, events)
        found = await self._ids(name)
        left = [event for event in events if event.id not in found]
        if found <= {event.id for event in events} or events[0].is_repeat:
            if len(left) == len(events):
                raise SinkFault("rejected", f"There is another object {name}.")
            return left, f"{name}: {len(events) - len(left)} events were there before"
        replaced = await self._send("PUT", name, body)
        return [], f"{_stored(replaced, name, events)}, instead of {len(found)}"

    async def _ids(self, name: str) -> set[str]:
        """Return the ids of the deliveries that an object has. Raises SinkFault."""
        response = await self._send("GET", name, answer_bytes=limits.SINK_OBJECT_READ_BYTES_MAX)
        if response.status != 200:
            raise _refused(response)
        if not response.is_complete:
            raise SinkFault("timeout", f"The object {name} could not be read in time.")
        try:
            return await asyncio.to_thread(self._format.ids, response.body)
        except ValueError:
            raise SinkFault("rejected", f"There is another object {name}.") from None

    async def _send(
        self,
        method: str,
        name: str,
        body: bytes = b"",
        headers: Any = None,
        answer_bytes: int = limits.SINK_ERROR_BYTES_MAX,
    ) -> SinkResponse:
        url = f"{self._url}/{quote(name, safe='/-_.~')}"
        given = dict(headers or {})
        if body:
            given["content-type"] = self._format.media_type
        at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        request = SinkRequest(method, url, given, body, answer_bytes)
        return await self._http(signed(self._key, request, at))

    def _folder(self, document: Any) -> str:
        """Return the folder of an object whose first event is this one."""
        date, _, time = (document.get("appended_at") or _NO_TIME).partition("T")
        values = dict(zip(("year", "month", "day"), date.split("-"), strict=True))
        values |= {"stream": document["stream"], "hour": time[:2]}
        return _PART.sub(lambda part: values[part[1]], self._path)


def object_name(delivery: str) -> str:
    """Return the name of the object whose first event this is, in the order of the stream."""
    _, segment, sequence, *rest = delivery.split("_")
    return "_".join((segment, f"{int(sequence):012}", *rest))


async def open_bucket(spec: SinkSpec) -> BucketSink:
    """Return the bucket of an endpoint; connections are opened with the first request."""
    return BucketSink(spec)


def check_url(url: str, addresses: CallbackAddresses) -> None:
    """Check the URL of a bucket. Raises InvalidField, RefusedAddress."""
    valid_url(url, addresses, field="url")
    parts = urlsplit(url)
    if "?" in url or not _PLAIN.fullmatch(parts.path):
        raise InvalidField(
            "The URL of a bucket is https://HOST/BUCKET, or https://BUCKET.HOST: a path of letters,"
            " digits and - . _ ~ without a query.",
            field="url",
        )


def _stored(response: SinkResponse, name: str, events: Sequence[SinkEvent]) -> str:
    """Return what was stored. Raises SinkFault if the server refused it."""
    if not 200 <= response.status < 300:
        raise _refused(response)
    return f"{name}: {len(events)} events"


def _refused(response: SinkResponse) -> SinkFault:
    """Return the fault that an answer means, in the server's words."""
    text = response.body.decode("utf-8", "replace")
    words = [found[1] for tag in ("Code", "Message")
             if (found := re.search(rf"<{tag}>([^<]*)</{tag}>", text))]  # fmt: skip
    return SinkFault(
        "redirect" if 300 <= response.status < 400 else "status",
        ": ".join(words) or text,
        status=response.status,
        retry_after_s=read_retry_after(
            response.headers.get("retry-after", ""), time.time_ns() // 1_000
        ),
    )


KIND = SinkKind(
    "s3",
    "Objects in a bucket of S3",
    ("https", "http"),
    BucketSettings,
    check_url,
    ("access_key",),
    ("tls",),
    True,
    {
        "ordered": True,
        "batch_events_max": limits.SINK_OBJECT_EVENTS_DEFAULT,
        "batch_bytes_max": limits.SINK_OBJECT_BYTES_DEFAULT,
        "batch_linger_ms": limits.SINK_OBJECT_LINGER_MS_DEFAULT,
    },
    {"format": ("native",)},
    open_bucket,
)
