"""What a connection leaves when its client leaves."""

import asyncio
import gc
import secrets
import socket
from typing import Any

import pytest
import uvloop
from websockets.server import ServerProtocol

from delivery.listening.consumer import WebSocketConsumer, WebSocketRoute
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.route_table import listen_routes
from delivery.listening.services import ListenerServices
from delivery.listening.socket_places import SocketPlaces
from delivery.sessions.route_table import session_routes
from eventhub.http.app import Router
from eventhub.http.call import RouteServices
from eventhub.http.messages import Receive, Scope, Send
from eventhub.http.origins import Origins
from eventhub.web.quick_protocol import QuickHttpProtocol
from eventhub.web.server import HubCycle
from eventhub.web.websocket import HubWebSocketProtocol
from tests.acceptance.consumers import consumer
from tests.acceptance.one_process import services_of, socket_services
from tests.acceptance.wire import EVENT, until
from tests.live import LiveHub, LiveZone
from tests.served_asgi import frame, handshake, served

EVENTS = 120
BODY = secrets.token_urlsafe(75_000)  # 100,000 characters; the kernel takes less than all events
FRAMES = b"".join(
    frame(0x81, message)
    for message in (
        b'{"op": "interest", "interest": "i", "stream": "orders"}',
        b'{"op": "connect", "session": "s"}',
        b'{"op": "listen", "listener": "a", "stream": "orders", "from": "oldest"}',
    )
)
RESPONSES = {
    "events of a stream": "/v1/streams/orders/events?from=oldest",
    "events of a session": "/v1/sessions/s/events",
}
# the index of a session's registrations has cycles of its own
CHECKED = ("delivery.", "eventhub.", "uvicorn.", "websockets.", "httptools.")
CLOSE = frame(0x88, b"")
ENDED = (HubWebSocketProtocol, ServerProtocol, WebSocketConsumer, QuickHttpProtocol, HubCycle)


@pytest.mark.parametrize("kind", ["websocket", "closed websocket", *RESPONSES])
def test_a_connection_that_ends_while_it_sends_leaves_no_garbage(
    hub: LiveHub, zone: LiveZone, kind: str
) -> None:
    """Each left pages of events until a full garbage collection, which comes after millions of
    objects: a web process with slow readers grew by megabytes a minute. The event loop is that of
    a web process.
    """
    zone.create_stream("orders")
    consumer(zone)
    for _ in range(EVENTS // 20):
        assert zone.emit("orders", [{**EVENT, "body": BODY}] * 20).status == 200
    if kind in RESPONSES:
        sent = [events_request(RESPONSES[kind], zone.admin)]
    else:
        sent = [handshake("/v1/ws", zone.admin), FRAMES]
    gc.disable()
    try:
        uvloop.run(connections_that_end(hub, sent, CLOSE if kind == "closed websocket" else b""))
    finally:
        gc.enable()


def events_request(path: str, key: str) -> bytes:
    """Return a request of server-sent events."""
    return (
        f"GET {path} HTTP/1.1\r\nhost: hub\r\naccept: text/event-stream\r\n"
        f"authorization: Bearer {key}\r\n\r\n"
    ).encode()


async def connections_that_end(hub: LiveHub, sent: list[bytes], last: bytes) -> None:
    """Open connections that read nothing but a first answer, and close them while they are sent
    history, after a last frame if there is one.
    """
    loop = asyncio.get_running_loop()
    async with (
        services_of(hub) as services,
        served(application_of(services)) as (address, state),
    ):
        for _ in range(2):
            garbage()  # of the start, and of what the first connection started
            with socket.create_connection(address) as client:
                client.setblocking(False)
                for data in sent:
                    await loop.sock_sendall(client, data)
                    await loop.sock_recv(client, 1_000)
                await until(lambda: is_sending(state.connections))
                if last:
                    await loop.sock_sendall(client, last)
                    await until(lambda: not state.tasks)  # it was cancelled
            await until(lambda: not state.connections)
            await until(lambda: not any(issubclass(type(each), ENDED) for each in gc.get_objects()))
        assert not {name for name in garbage() if name.startswith(CHECKED)}


def application_of(services: ListenerServices) -> Any:
    """Return the part of a web process's application that serves listeners."""
    monitor = ReaderMonitor(services.authorizer, SocketPlaces(services.log.pool))
    sockets = socket_services(services)
    websockets = WebSocketRoute(sockets, monitor, Origins((), ("*",)))
    shared = RouteServices(services.log, services.authorizer, services.types, "", sockets.emits)
    routes = (
        *listen_routes(services, monitor, None),
        *session_routes(services, sockets.sessions, monitor),
    )
    router = Router(websockets, routes, shared)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await (websockets if scope["type"] == "websocket" else router)(scope, receive, send)

    return application


def is_sending(connections: set[Any]) -> bool:
    """Return whether a connection waits for its client."""
    return any(
        each.flow.write_paused if type(each) is QuickHttpProtocol else not each.writable.is_set()
        for each in connections
    )


def garbage() -> set[str]:
    """Return the types of objects that only a collection frees."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = {f"{type(each).__module__}.{type(each).__name__}" for each in gc.garbage}
    gc.garbage.clear()
    gc.collect()
    return found
