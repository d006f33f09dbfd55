"""A reader of one session over server-sent events: an iterator over chunks of frames. The client
acknowledges with other requests (acknowledgement_route.py). Plain module.
"""

from collections.abc import AsyncGenerator
from typing import cast

from delivery.listening.frames import Frame, SseFrames
from delivery.listening.protocol import refusal
from delivery.listening.round_reader import RoundReader
from delivery.listening.services import ListenerServices
from delivery.sessions.socket_sessions import SessionServices, SocketSessions
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.http.messages import Peer


class SessionEventReader(RoundReader):
    """The reader of one response. Call `connect`, iterate over `chunks`, and `close` at the end."""

    transport = "sse"

    def __init__(
        self,
        services: ListenerServices,
        sessions: SessionServices,
        credential: str,
        principal: Principal,
    ) -> None:
        super().__init__(services, SseFrames(), credential, principal)
        self._sessions = SocketSessions(services, sessions, self)
        self._frames: list[Frame] = []  # of the next chunk

    async def connect(self, name: str) -> None:
        """Connect the client's session of that name. Raises what SocketSessions.connect raises."""
        await self._sessions.connect(name)

    async def chunks(self, peer: Peer) -> AsyncGenerator[bytes, None]:
        """Yield what to send until the session ends, the client has gone, or its credential is no
        longer valid.
        """
        yield b"retry: %d\n\n" % limits.SSE_RETRY_MS
        self.wakers.add(self.waker)
        try:
            while not (self._sessions.is_empty or peer.over):
                self.waker.clear()
                busy = await self.serve()
                if self._frames:
                    yield self._chunk()
                    self.sending = False
                elif not busy:
                    await self.waker.wait()
        except EventHubError as error:
            self.end_reason = error.code
            await self.send_message(refusal(error))
            yield self._chunk()
        finally:
            self.wakers.discard(self.waker)

    def resume_message(self) -> Frame:
        return self.form.message({"op": "resume", "reason": "slow_reader"})

    async def send(self, frames: list[Frame]) -> None:
        """Add frames to the next chunk. A round adds those of one batch of the session at most."""
        self._frames += frames

    async def _ping(self) -> None:
        self._frames.append(b":\n\n")

    def _chunk(self) -> bytes:
        """Join the frames into one chunk, which waits until the reader takes it."""
        frames, self._frames = self._frames, []
        self.frames_taken += len(frames)  # those of the chunk before
        self.sending = True
        return b"".join(cast("list[bytes]", frames))  # SseFrames are bytes
