"""GET /v1/sessions/{session}/events: the events of a consumer session of all its streams, as
server-sent events. Plain module.
"""

from delivery.listening.query import SSE, accepted, credential_of
from delivery.listening.reader_monitor import ReaderMonitor
from delivery.listening.responses import SSE_HEADERS
from delivery.listening.services import ListenerServices
from delivery.sessions.event_reader import SessionEventReader
from delivery.sessions.socket_sessions import SessionServices
from eventhub.http.call import Call
from eventhub.http.messages import Peer, StreamingResponse, utf8_path


class SessionEventsHandler:
    """The route's handler in one process."""

    def __init__(
        self, services: ListenerServices, sessions: SessionServices, monitor: ReaderMonitor
    ) -> None:
        self._services = services
        self._sessions = sessions
        self._monitor = monitor

    async def __call__(self, call: Call) -> StreamingResponse:
        """Handle a request: connect the session, whose events are the body. Raises subclasses of
        BadRequest and Unauthenticated, and what SocketSessions.connect raises.
        """
        scope, services = call.scope, self._services
        credential = credential_of(scope["query_string"], scope["headers"])
        principal = await call.authenticate(credential)
        if principal.session is not None:
            principal.session.require("listen")
        accepted(scope["headers"], (SSE,))
        name = await self._sessions.delivery.name_in_path(principal, utf8_path(call.parameters[0]))
        peer = call.incoming.peer
        with await self._monitor.admit(principal):
            await services.catch_up.handshake(principal.queue_owner)
            reader = SessionEventReader(services, self._sessions, credential, principal)
            await reader.connect(name)
            self._monitor.add(reader, peer)
        peer.waker = reader.waker

        async def close() -> None:
            await self._close(reader, peer)

        return StreamingResponse(200, reader.chunks(peer), SSE_HEADERS, SSE, close)

    async def _close(self, reader: SessionEventReader, peer: Peer) -> None:
        peer.waker = None
        self._monitor.remove(reader)
        await reader.close()
