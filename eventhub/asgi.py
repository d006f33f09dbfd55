"""The web process as one ASGI application: the hot routes, the websocket, and Django for the rest.
Django module.

Composition root.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eventhub.settings")

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import django
from starlette.middleware.cors import CORSMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from eventhub.base import limits
from eventhub.base.broker import request_task, send_task
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.base.event_loop import run_forever
from eventhub.base.fair_queue import Admission, Slots, WaitLimits
from eventhub.base.garbage import freeze_loaded
from eventhub.eventlog.archive.reader import archive_of
from eventhub.http.app import AsgiApp, Router
from eventhub.http.call import RouteServices
from eventhub.http.emit import EmitServices
from eventhub.http.messages import Receive, Scope, Send
from eventhub.http.origins import Origins
from eventhub.http.quick_emits import QuickEmits
from eventhub.http.request_ids import with_request_ids
from eventhub.http.routes import HTTP_ROUTES
from eventhub.http.tracing import with_traces
from eventhub.types.paths import EncodedTypePaths
from eventhub.web.django_handler import OneThreadHandler
from eventhub.web.hub import Hub, open_hub
from eventhub.web.quick_protocol import QUICK_EMITS

django.setup(set_prefix=False)
_django: Any = EncodedTypePaths(OneThreadHandler())

from delivery.listening.catchup import CatchUpScheduler  # noqa: E402
from delivery.listening.consumer import WebSocketRoute  # noqa: E402
from delivery.listening.fan_out import FanOuts  # noqa: E402
from delivery.listening.listener_recorder import recording_listeners  # noqa: E402 - needs Django set up
from delivery.listening.pump import SocketServices  # noqa: E402
from delivery.listening.reader_monitor import ReaderMonitor  # noqa: E402
from delivery.listening.route_table import listen_routes  # noqa: E402
from delivery.listening.served import ServedListeners  # noqa: E402
from delivery.listening.services import ListenerServices  # noqa: E402
from delivery.listening.socket_emits import SocketEmits  # noqa: E402
from delivery.listening.socket_places import counting_sockets  # noqa: E402
from delivery.listening.version_loader import VersionLoader  # noqa: E402
from delivery.mcp.operations import mcp_routes  # noqa: E402
from delivery.sessions.delivery import delivering_sessions  # noqa: E402
from delivery.sessions.pull_operations import pull_routes  # noqa: E402
from delivery.sessions.pull_sources import pulled_sessions  # noqa: E402
from delivery.sessions.route_table import session_routes  # noqa: E402
from delivery.sessions.socket_sessions import SessionServices  # noqa: E402
from eventhub import urls  # noqa: E402, F401 - Django would load them at the first request
from registrations.bulk.operations import BULK_ROUTES  # noqa: E402
from registrations.endpoints.secrets import Keyring  # noqa: E402
from registrations.explain.operations import EXPLAIN_ROUTES  # noqa: E402
from registrations.interest.operations import interest_routes  # noqa: E402
from registrations.sources.operations import source_routes  # noqa: E402


class AsgiApplication:
    """Opens the hub with the server's lifespan; before that nothing is served."""

    def __init__(self) -> None:
        self._closing = AsyncExitStack()
        self._router: Router
        self._http: AsgiApp | None = None
        self._websocket: AsgiApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._http is not None:
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket" and self._websocket is not None:
            await self._websocket(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(scope.get("state", {}), receive, send)

    async def _lifespan(self, state: dict[str, Any], receive: Receive, send: Send) -> None:
        await receive()
        state[QUICK_EMITS] = await self._open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._closing.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that a route makes on behalf of its caller."""
        await self._router(scope, receive, send)

    async def _open(self) -> QuickEmits:
        """Open the hub; return what the server's protocol calls without ASGI."""
        hub = await self._closing.enter_async_context(open_hub(read_env()))
        counting = counting_sockets(hub.env.database_url)
        places = await self._closing.enter_async_context(counting)
        monitor = ReaderMonitor(hub.authorizer, places)
        monitoring = asyncio.create_task(run_forever("reader monitor", monitor.run))
        self._closing.callback(monitoring.cancel)
        if hub.env.redis_url:
            request_task.send = partial(send_task, redis_url=hub.env.redis_url)
        clock = SystemClock()
        recorder = await self._closing.enter_async_context(
            recording_listeners(hub.env.database_url)
        )
        services = ListenerServices(
            hub.log,
            hub.authorizer,
            hub.feed,
            clock,
            hub.types,
            hub.closures,
            recorder,
            CatchUpScheduler(),
            VersionLoader(hub.log),
            FanOuts(hub.authorizer, clock, hub.types),
        )
        archive = archive_of(hub.env.archive_url)
        delivery = await self._closing.enter_async_context(
            delivering_sessions(hub.env.database_url, services)
        )
        pulls = await self._closing.enter_async_context(
            pulled_sessions(hub.env.database_url, services, delivery)
        )
        sessions = SessionServices(delivery, pulls)
        keyring = Keyring((hub.env.secret_key, *hub.env.secret_key_fallbacks))
        origins = Origins((*hub.env.origins, *hub.env.cors_origins), hub.env.allowed_hosts)
        routes = (
            *HTTP_ROUTES,
            *BULK_ROUTES,
            *EXPLAIN_ROUTES,
            *interest_routes(hub.authorizer, hub.closures),
            *listen_routes(services, monitor, archive),
            *mcp_routes(ServedListeners(services, monitor), origins, self._route, keyring),
            *session_routes(services, sessions, monitor),
            *pull_routes(pulls, monitor),
            *source_routes(keyring),
        )
        emits = _emits()
        emit_services = EmitServices(hub.log, hub.authorizer, hub.types)
        sockets = SocketServices(services, sessions, SocketEmits(emit_services, emits))
        route_services = RouteServices(hub.log, hub.authorizer, hub.types, hub.health, emits)
        router = self._router = Router(_django, routes, route_services)
        http = with_traces(router, hub.tracer)
        self._http = _begun(_with_cors(http, hub), hub)
        websocket = WebSocketRoute(sockets, monitor, origins)
        self._websocket = _begun(with_traces(websocket, hub.tracer), hub)
        freeze_loaded()
        return QuickEmits(router, hub.tracer)


def _emits() -> Admission:
    """Create the admission of the emit route: the requests parsed and appended at a time."""
    wait_limits = WaitLimits(
        limits.EMIT_WAITING_MAX, limits.EMIT_WAITING_PER_CLIENT_MAX, limits.EMIT_WAIT_S_MAX
    )
    return Admission(Slots(limits.EMIT_SLOTS, limits.EMIT_SLOTS_PER_CLIENT), wait_limits)


def _begun(app: AsgiApp, hub: Hub) -> AsgiApp:
    """Wrap an application so that each request has an id and the real address of its caller, which
    trusted proxies report; none is trusted by default.
    """
    app = with_request_ids(app)
    proxies: Any = ProxyHeadersMiddleware
    return proxies(app, list(hub.env.trusted_proxies)) if hub.env.trusted_proxies else app


def _with_cors(app: AsgiApp, hub: Hub) -> AsgiApp:
    """Wrap the routes and Django in CORS headers for the origins set; none by default."""
    if not hub.env.cors_origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(hub.env.cors_origins),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=[
            "Authorization",
            "Content-Type",
            "EventHub-Action",
            "EventHub-Session",
            "Idempotency-Key",
            "If-Match",
            "If-None-Match",
            "Last-Event-ID",
            "X-Request-Id",
        ],
        expose_headers=[
            "ETag",
            "EventHub-Action",
            "EventHub-Caused",
            "EventHub-Cursor",
            "EventHub-Segment",
            "EventHub-Sequence",
            "RateLimit",
            "RateLimit-Policy",
            "Retry-After",
            "X-Request-Id",
        ],
    )


application = AsgiApplication()
