"""The sessions of one socket: connects and disconnects them, and sends their events beside those of
the socket's listeners (RDY-52). Plain module.

Concurrency contract: one event loop. The socket's reader calls `handle` and `acknowledge`, its pump
`serve`; a lock keeps their changes apart. Sessions are connected side by side, each by a task.
"""

import asyncio
import weakref
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple, Protocol

from delivery.listening.frames import Frame, FrameFormat
from delivery.listening.listener import StreamListener
from delivery.listening.messages import Ack, Connect, Credit, Disconnect, Nak
from delivery.listening.protocol import refusal
from delivery.listening.ready import ReadyWaker, take_all
from delivery.listening.services import ListenerServices
from delivery.sessions.attachments import SessionPosition
from delivery.sessions.connected import CHANGED, ConnectedSession
from delivery.sessions.connects import ConnectsUnderWay
from delivery.sessions.delivery import SessionDelivery
from delivery.sessions.errors import SessionConnected, SessionNotConnected
from delivery.sessions.pull_sources import PullSources
from delivery.sessions.redelivery import read_again, take_again
from delivery.sessions.session_reader import SessionReader, SessionStreamState
from delivery.sessions.shared_member import SharedMember
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError, TooManyRequests
from eventhub.base.event_loop import Waker

_Message = dict[str, Any]


class SessionSocket(Protocol):
    """The part of a socket's pump that its sessions use."""

    principal: Principal
    waker: asyncio.Event
    form: FrameFormat[Frame]
    transport: str  # for the metric of connected sessions

    def changed(self) -> bool: ...
    def add(self, listener: StreamListener, waker: Waker) -> None: ...
    async def serve_listener(self, listener: StreamListener) -> bool: ...
    async def end(self, listener: StreamListener, reason: str) -> None: ...
    async def send(self, frames: list[Frame]) -> None: ...


class SessionServices(NamedTuple):
    """What the sessions of all sockets of a process share."""

    delivery: SessionDelivery
    sources: PullSources


class SocketSessions:
    """The connected sessions of one socket by name."""

    def __init__(
        self, services: ListenerServices, sessions: SessionServices, socket: SessionSocket
    ) -> None:
        self._delivery, self._sources = sessions
        self._services = services
        self._socket: SessionSocket = weakref.proxy(socket)  # which refers to them
        self._sessions: dict[str, ConnectedSession] = {}
        self._ready: dict[ConnectedSession, None] = {}  # to serve
        self._changing = asyncio.Lock()
        self._connecting = ConnectsUnderWay()

    @property
    def is_empty(self) -> bool:
        """Whether no session is connected."""
        return not self._sessions

    async def handle(self, message: Connect | Disconnect | Credit) -> None:
        """Handle a message about a session. Raises SessionNotConnected."""
        match message:
            case Connect():
                await self._connecting.start(self._connect_or_refuse(message.session))
            case Disconnect():
                await self.disconnect(message.session)
            case Credit():
                session = self._find(message.session)
                session.set_window(message.events)
                if session.member is not None:
                    session.member.set_window(message.events)

    async def connect(self, name: str) -> None:
        """Connect a session, send `connected`, and start its streams.

        Raises SessionConnected, TooManyRequests, and what SessionDelivery.connect raises.
        """
        if name in self._sessions or name in self._connecting.names:
            raise SessionConnected(session=name)
        if len(self._sessions) + len(self._connecting.names) >= limits.SESSIONS_PER_SOCKET_MAX:
            raise TooManyRequests(
                "This socket has the maximum number of sessions; open another socket.",
                sessions_max=limits.SESSIONS_PER_SOCKET_MAX,
            )
        await self._connect(name)

    async def connects_done(self) -> None:
        """Wait until all sessions are connected, or refused, that were to be connected."""
        await self._connecting.done()

    async def _connect_or_refuse(self, name: str) -> None:
        try:
            await self.connect(name)
        except EventHubError as error:
            with suppress(OSError):  # the reader has disconnected
                await self._say({**refusal(error), "session": name})

    async def disconnect(self, name: str) -> None:
        """End a session and send `disconnected`. Raises SessionNotConnected."""
        async with self._changing:
            session = self._find(name)
            saved = await self._end([session], "stopped")
            acks = session.acks if session.settings.id in saved else []
        ended = {"op": "disconnected", "session": name, "reason": "stopped"}
        await self._say(*session.messages, *acks, ended)

    def acknowledge(self, message: Ack) -> None:
        """Acknowledge events of a session; with an id, `acked` is sent when that is stored. Raises
        SessionNotConnected.
        """
        session = self._find(message.session or "")
        stream = message.stream or ""
        answer = {"op": "acked", "session": session.name, "stream": stream, "id": message.id}
        if session.member is not None:
            found = message.sequence, message.sequences or ()
            session.member.acknowledge(stream, found, answer if message.id is not None else None)
            return
        session.acknowledge(stream, message.sequence, message.sequences or ())
        if message.id is not None:
            session.acks.append(answer)
        self._delivery.note_changed(session, urgent=message.id is not None)

    def redeliver(self, message: Nak) -> None:
        """Have events of a session delivered again. Raises SessionNotConnected."""
        session = self._find(message.session)
        if session.member is not None:
            session.member.give_back(message.stream, message.sequences)
        else:
            session.redeliver(message.stream, message.sequences)

    @property
    def ready(self) -> bool:
        """Whether a session is to be served."""
        return bool(self._ready)

    def wake_all(self) -> None:
        """Have every session served in the next round."""
        self._ready |= dict.fromkeys(self._sessions.values())

    async def serve(self) -> None:
        """Send what the sessions have that are ready: first what each has to report, then the next
        events of all in one write. The caller has confirmed the grants.
        """
        found, failed = take_all(self._ready), False
        for session in found:
            try:
                if self._is_connected(session):
                    await self._prepare(session)
            except DatabaseUnavailable:
                failed = True
                self._ready[session] = None
        await self._send_events([one for one in found if self._is_connected(one)])
        if failed:
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    def start_refused(self) -> None:
        """Have the sessions start the streams again that were refused or ended: the rights of the
        client have changed. What is still refused is reported again.
        """
        for session in self._sessions.values():
            read = {reader.info.id for reader in session.readers.values()}
            if read != session.known_streams:
                session.known_streams = read
                session.may_have_new_streams = True
                session.waker.set()

    async def close(self) -> None:
        """Save the positions of all sessions, and end them."""
        await self._connecting.cancel()
        async with self._changing:
            await self._end(list(self._sessions.values()), "disconnected")

    async def _connect(self, name: str) -> None:
        self._connecting.names.add(name)
        try:
            session, positions = await self._delivery.connect(
                self._socket.principal, name, self._socket.waker, self._socket.transport
            )
            try:
                await self._start(session, positions)
            except BaseException:
                await self._end([session], "failed")
                raise
        finally:
            self._connecting.names.discard(name)

    async def _start(self, session: ConnectedSession, positions: list[SessionPosition]) -> None:
        """Announce that a session is connected, and serve it from now on."""
        messages: list[_Message] = []
        member = await self._join(session)
        if member is not None:
            session.member, positions = member, []
        opened = [await self._open(session, position, messages) for position in positions]
        readers = [reader for reader in opened if reader is not None]
        started = [reader.mark_started() for reader in readers]
        streams = [{key: one[key] for key in ("stream", "cursor", "head")} for one in started]
        head = {"op": "connected", "session": session.name, "streams": streams, **session.described}
        await self._say(head, *messages)
        self._sessions[session.name] = session
        session.waker = ReadyWaker(self._ready, session, self._socket.waker)
        session.waker.set()
        if member is not None:
            member.start()
        for reader in readers:
            self._serve(session, reader)

    async def _join(self, session: ConnectedSession) -> SharedMember | None:
        """Return the member whose events a session gets if its group shares."""
        if session.settings.session_group is None:
            return None
        principal, name = self._socket.principal, session.name
        found = await self._sources.joining(principal, name, session.attachment)
        return None if found is None else SharedMember(self._sources, found, session)

    async def _open(
        self, session: ConnectedSession, position: SessionPosition, messages: list[_Message]
    ) -> SessionReader | None:
        """Start the reader of a stream; add the error to the messages if that is refused. Raises
        DatabaseUnavailable.
        """
        state = SessionStreamState(session, self._delivery.matchers, position)
        principal, at = self._socket.principal, position.cursor
        try:
            reader = await SessionReader.start(self._services, principal, state, at)
        except DatabaseUnavailable:
            raise
        except EventHubError as error:
            messages.append(refusal(error, state.subject))
            reader = None
        session.known_streams.add(position.stream_id)
        return reader

    async def _add_streams(self, session: ConnectedSession) -> None:
        """Start the streams that a session has got since it was connected, and report them. Raises
        DatabaseUnavailable; then it is tried again.
        """
        session.may_have_new_streams = False
        async with self._changing:
            if not self._is_connected(session):
                return
            try:
                positions = await self._delivery.positions(session)
                for position in positions:
                    if position.stream_id not in session.known_streams:
                        await self._add_stream(session, position)
            except DatabaseUnavailable:
                session.may_have_new_streams = True
                raise

    async def _add_stream(self, session: ConnectedSession, position: SessionPosition) -> None:
        messages: list[_Message] = []
        reader = await self._open(session, position, messages)
        if reader is None:
            await self._say(*messages)
            return
        await self._say(reader.mark_started())
        self._serve(session, reader)

    def _serve(self, session: ConnectedSession, reader: SessionReader) -> None:
        """Serve a reader from now on, with its session."""
        self._socket.add(reader, ReadyWaker(session.ready, reader, session.waker))

    async def _prepare(self, session: ConnectedSession) -> None:
        """Send what a session has to report, and put its next events into its queue. Raises
        DatabaseUnavailable.
        """
        if session.end_reason:
            await self._leave(session)
        elif session.may_have_new_streams and session.member is None:
            await self._add_streams(session)
        if session.member is not None:
            session.member.authenticate(self._socket.principal)
        if session.messages:
            messages, session.messages = session.messages, []
            await self._say(*messages)
        if session.again and self._is_connected(session) and not self._socket.changed():
            await self._send_again(session)
        await self._fill(session)

    async def _fill(self, session: ConnectedSession) -> None:
        """Put the next events of a session into its queue, those of the readers that are ready."""
        now_us = self._services.clock.now_us()
        for reader in take_all(session.ready):
            if reader.put_routed(now_us) is not None:
                more = reader.may_continue()
            else:
                more = await self._socket.serve_listener(reader)
                if more:
                    await asyncio.sleep(0)  # let others run: the next one may take as long
                more = more or not session.queue.wants_events
            if more and session.readers.get(reader.info.name) is reader:
                session.ready[reader] = None

    async def _send_events(self, sessions: list[ConnectedSession]) -> None:
        """Send the next events of sessions; those that have more are ready again."""
        socket = self._socket
        if socket.changed():
            self._ready |= dict.fromkeys(sessions)
            return
        frames: list[Frame] = []
        now_us, until_s = self._services.clock.now_us(), monotonic() + limits.TIME_SLICE_S
        for session in sessions:
            if len(frames) >= limits.FRAMES_PER_SLICE_MAX or monotonic() > until_s:
                self._ready[session] = None
                continue
            if session.member is not None:
                found = session.member.next_frames(socket.form)
                more = bool(found)
            else:
                found = session.next_frames(socket.form, now_us)
                more = session.may_have_more
            frames += found
            if more:
                self._ready[session] = None
            if session.positions_due():
                self._delivery.note_changed(session)
        await self._send_frames(frames)

    def _is_connected(self, session: ConnectedSession) -> bool:
        return self._sessions.get(session.name) is session

    async def _send_again(self, session: ConnectedSession) -> None:
        """Send events that are delivered again. Raises DatabaseUnavailable."""
        found = await read_again(self._services, self._socket.form, session)
        if not self._socket.changed() and self._is_connected(session):
            frames = take_again(session, found)
            if len(frames) < len(found):
                self._delivery.note_changed(session)
            await self._send_frames(frames)
        if session.again:
            session.waker.set()  # after a change of rights they are read again

    async def _send_frames(self, frames: list[Frame]) -> None:
        if frames:
            metrics.SENT.add(len(frames), sum(map(len, frames)))
            await self._socket.send(frames)

    async def _leave(self, session: ConnectedSession) -> None:
        """End a session for the reason that it has; connect it again if its settings changed."""
        reason = session.end_reason
        async with self._changing:
            if not self._is_connected(session):
                return
            if reason == CHANGED:  # it is to be connected by this call alone
                self._connecting.names.add(session.name)
            await self._end([session], reason)
            error: _Message = {}
            if reason == CHANGED:
                try:
                    await self._connect(session.name)
                    return
                except EventHubError as refused:
                    error = refused.problem()
        ended = {"op": "disconnected", "session": session.name, "reason": reason}
        await self._say({**error, **ended})

    async def _end(self, sessions: list[ConnectedSession], reason: str) -> set[int]:
        """Save the positions of sessions, detach them and end their readers; return the ids of
        those whose positions are saved.
        """
        for session in sessions:
            self._sessions.pop(session.name, None)
            self._ready.pop(session, None)
            if session.member is not None:
                await session.member.close()
        saved = await self._delivery.disconnect(sessions)
        for session in sessions:
            async with self._delivery.ending:
                for reader in list(session.readers.values()):
                    await self._socket.end(reader, reason)
                session.finish(self._socket.waker)
                await asyncio.sleep(limits.SESSION_END_REST_S if len(sessions) > 1 else 0)
        return saved

    async def _say(self, *messages: _Message) -> None:
        form = self._socket.form
        await self._socket.send([form.message(fields) for fields in messages])

    def _find(self, name: str) -> ConnectedSession:
        if name not in self._sessions:
            raise SessionNotConnected(session=name)
        return self._sessions[name]
