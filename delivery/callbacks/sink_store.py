"""Stores the events of endpoints that are sinks, on connections that a worker keeps for a while.
Plain module.
"""

import asyncio
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from yarl import URL

from delivery.callbacks.client import HttpClient, MalformedResponse
from delivery.callbacks.guard import AddressRefused, Origin
from eventhub.base import limits
from registrations.endpoints.addresses import AllowedAddresses
from registrations.sinks.kind import (
    OpenSink,
    SinkAnswer,
    SinkEvent,
    SinkFault,
    SinkKind,
    SinkRequest,
    SinkResponse,
    SinkSpec,
)

T = TypeVar("T")


class SinkTarget(NamedTuple):
    """An endpoint whose events are stored. `changed_at_us`: its settings are as of this time."""

    endpoint_id: int
    changed_at_us: int
    kind: SinkKind
    url: str
    settings: Any
    authentication: Mapping[str, str]
    zone: str
    timeout_s: float
    context: ssl.SSLContext | None = None  # of an endpoint with certificates of its own


class _Kept(NamedTuple):
    """An open sink that nobody uses."""

    sink: OpenSink
    idle: asyncio.TimerHandle


class SinkStore:
    """The open sinks of one worker. An endpoint has SINK_OPEN_PER_ENDPOINT_MAX at most."""

    def __init__(self, addresses: AllowedAddresses, client: HttpClient) -> None:
        self._addresses = addresses
        self._client = client
        # of endpoints as they were at a time; least recently used first
        self._kept: OrderedDict[tuple[int, int], list[_Kept]] = OrderedDict()
        self._gates: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    async def store(self, target: SinkTarget, events: Sequence[SinkEvent]) -> SinkAnswer:
        """Store events, all or none, and return the sink's answer. Raises SinkFault."""
        return await self._call(target, lambda sink: sink.store(events))

    async def check(self, target: SinkTarget) -> str:
        """Return what was found, if everything is there. Raises SinkFault."""
        return await self._call(target, lambda sink: sink.check())

    def close(self) -> None:
        for kept in [one for several in self._kept.values() for one in several]:
            kept.idle.cancel()
            kept.sink.close()
        self._kept.clear()

    async def _call(self, target: SinkTarget, call: Callable[[OpenSink], Awaitable[T]]) -> T:
        gate = self._gates.get(target.endpoint_id)
        if gate is None:
            gate = asyncio.Semaphore(limits.SINK_OPEN_PER_ENDPOINT_MAX)
            self._gates[target.endpoint_id] = gate
        started_s = time.monotonic()
        try:
            async with asyncio.timeout(target.timeout_s), gate:
                return await self._on_sink(target, call)
        except TimeoutError:
            waited_s = time.monotonic() - started_s
            raise SinkFault("timeout", f"no answer within {waited_s:.1f} s") from None
        except socket.gaierror as error:
            raise SinkFault("unknown_host", str(error)) from None
        except AddressRefused as error:
            raise SinkFault("refused_address", str(error)) from None
        except ssl.SSLError as error:
            raise SinkFault("tls", str(error)) from None
        except MalformedResponse as error:
            raise SinkFault("protocol", str(error)) from None
        except OSError as error:
            raise SinkFault("connection", str(error) or type(error).__name__) from None

    async def _on_sink(self, target: SinkTarget, call: Callable[[OpenSink], Awaitable[T]]) -> T:
        """Call an open sink. One that was kept may have lost its connection: then another one is
        called, since storing again changes nothing.
        """
        while kept := self._take(target):
            try:
                return await self._use(target, kept, call)
            except SinkFault as fault:
                if fault.code != "connection":
                    raise
        return await self._use(target, await self._open(target), call)

    async def _open(self, target: SinkTarget) -> OpenSink:
        addresses = self._addresses.of_zone(target.zone)
        return await target.kind.open(
            SinkSpec(
                partial(send_request, self._client, target),
                self._client.resolve,
                *(target.url, target.settings, target.authentication, addresses),
                target.timeout_s,
            )
        )

    async def _use(
        self, target: SinkTarget, sink: OpenSink, call: Callable[[OpenSink], Awaitable[T]]
    ) -> T:
        """Call a sink; keep it afterwards, or close it if the call failed or was abandoned."""
        calling = asyncio.ensure_future(call(sink))
        try:
            answer = await asyncio.shield(calling)
        except BaseException:
            sink.close()
            calling.add_done_callback(_retrieve)
            raise
        self._keep(target, sink)
        return answer

    def _take(self, target: SinkTarget) -> OpenSink | None:
        key = target.endpoint_id, target.changed_at_us
        several = self._kept.get(key)
        if not several:
            return None
        kept = several.pop()
        kept.idle.cancel()
        if not several:
            del self._kept[key]
        return kept.sink

    def _keep(self, target: SinkTarget, sink: OpenSink) -> None:
        key = target.endpoint_id, target.changed_at_us
        loop = asyncio.get_running_loop()
        idle = loop.call_later(limits.SINK_IDLE_S, self._drop, key)
        self._kept.setdefault(key, []).append(_Kept(sink, idle))
        self._kept.move_to_end(key)
        if sum(map(len, self._kept.values())) > limits.SINK_OPEN_MAX:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[int, int]) -> None:
        """Close the sink of an endpoint that has not been used for longest."""
        several = self._kept.get(key)
        if not several:
            return
        oldest = several.pop(0)
        oldest.idle.cancel()
        oldest.sink.close()
        if not several:
            del self._kept[key]


def _retrieve(calling: "asyncio.Future[Any]") -> None:
    """Read the end of a call that was abandoned, which fails since its sink was closed."""
    if not calling.cancelled():
        with suppress(Exception):
            calling.result()


async def send_request(
    client: HttpClient, target: SinkTarget, request: SinkRequest
) -> SinkResponse:
    """Send a request of a sink to an address that its zone may reach. Raises what the client
    raises.
    """
    url = URL(request.url, encoded=True)
    assert url.raw_host and url.port  # noqa: S101 - the kind checked it
    origin = Origin(url.raw_host, url.port, url.scheme == "https", target.zone, target.context)
    lines = {**request.headers, "content-length": str(len(request.body)), "accept": "*/*"}
    head = f"{request.method} {url.raw_path_qs} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    sent = head.encode() + b"\r\n" + request.body
    found = await client.send(origin, sent, request.answer_bytes_max, target.timeout_s)
    headers = {name.lower(): value for name, value in found.headers}
    return SinkResponse(found.status, headers, found.body, found.is_complete)
