"""The interests that one socket watches, as a producer: it is notified of the interest in streams,
and again after each change. Plain module.

Concurrency contract: one event loop; each watch has a task of its own, and a lock that keeps its
messages in order: a later message is never older than an earlier one.
"""

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Protocol

from delivery.listening.errors import InterestExists, UnknownInterest
from delivery.listening.messages import Confirm, Forget, InterestMessage
from delivery.listening.protocol import refusal
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import EventHubError, TooManyRequests
from registrations.filters.closure.shapes import Shape, parse_shape
from registrations.interest.live import Closures, StreamInterest
from registrations.interest.routes import (
    audience_of,
    interest_json,
    interested_in,
    require_producer,
)
from registrations.interest.stored import InterestScope

SendMessage = Callable[[dict[str, Any]], Awaitable[None]]


class WatchSocket(Protocol):
    """The socket as its watches see it."""

    async def send_message(self, fields: dict[str, Any]) -> None: ...


class InterestWatch:
    """One watched interest, and the state last sent to its socket."""

    def __init__(self, message: InterestMessage, scope: InterestScope, send: SendMessage) -> None:
        self.name = message.interest
        self.stream = message.stream
        self.scope = scope
        self.task: asyncio.Task[None] | None = None
        self._shape: Shape | None = None if message.shape is None else parse_shape(message.shape)
        self._send = send
        self._sending = asyncio.Lock()
        self._revision = -1  # last revision of the interest that the socket knows
        self._sent: dict[str, Any] = {}

    async def notify(self, interest: StreamInterest) -> None:
        """Send the interest, unless it equals what was sent last."""
        async with self._sending:
            if interest.revision < self._revision:
                return
            self._revision = interest.revision
            fields = await self._fields(interest)
            if fields != self._sent:
                self._sent = fields
                sequence = {"sequence": interest.through.sequence}
                head = {"op": "interest", "interest": self.name, "stream": self.stream}
                await self._send({**head, **fields, **sequence})

    async def _fields(self, interest: StreamInterest) -> dict[str, Any]:
        if self._shape is None:
            fields = interest_json(interest).items()
            return {name: value for name, value in fields if name != "sequence"}
        return {"interested": await interested_in(interest, self._shape), "quench": interest.quench}


class InterestWatches:
    """The watches of one socket by name."""

    def __init__(self, authorizer: Authorizer, closures: Closures, socket: WatchSocket) -> None:
        self._authorizer = authorizer
        self._closures = closures
        self._socket: WatchSocket = weakref.proxy(socket)  # which refers to them
        self._watches: dict[str, InterestWatch] = {}

    async def handle(
        self, principal: Principal, message: InterestMessage | Confirm | Forget
    ) -> None:
        """Handle a message about an interest. Raises what `start`, `confirm` and `forget` raise."""
        match message:
            case InterestMessage():
                await self.start(principal, message)
            case Confirm():
                await self.confirm(message)
            case Forget():
                await self.forget(message)

    async def start(self, principal: Principal, message: InterestMessage) -> None:
        """Start a watch. Raises InterestExists, TooManyRequests, Forbidden, UnknownStream,
        InvalidField.
        """
        if message.interest in self._watches:
            raise InterestExists(interest=message.interest)
        if len(self._watches) >= limits.INTERESTS_PER_SOCKET_MAX:
            most = limits.INTERESTS_PER_SOCKET_MAX
            raise TooManyRequests(
                "This socket has the maximum number of interests.", interests_max=most
            )
        audience = audience_of(message.audience)
        require_producer(principal, message.stream)
        stream = await self._authorizer.stream(principal, message.stream)
        scope = InterestScope(stream.id, audience)
        watch = InterestWatch(message, scope, self._socket.send_message)
        self._watches[watch.name] = watch
        watch.task = asyncio.create_task(self._follow(watch))

    async def confirm(self, message: Confirm) -> None:
        """Send the interest of this moment if it changed, then its tag. Raises UnknownInterest,
        DatabaseUnavailable.
        """
        watch = self._find(message.interest)
        interest = await self._closures.current(watch.scope)
        await watch.notify(interest)
        answer = {"op": "confirmed", "interest": watch.name, "id": message.id, "tag": interest.tag}
        more = {"quench": interest.quench, "sequence": interest.through.sequence}
        await self._socket.send_message({**answer, **more})

    async def forget(self, message: Forget) -> None:
        """End a watch. Raises UnknownInterest."""
        await self._end(self._find(message.interest))
        await self._socket.send_message({"op": "forgotten", "interest": message.interest})

    async def recheck(self, principal: Principal) -> None:
        """End the watches that the principal may no longer have."""
        for watch in list(self._watches.values()):
            try:
                require_producer(principal, watch.stream)
            except EventHubError as error:
                await self._refuse(watch, error)

    async def close(self) -> None:
        for watch in list(self._watches.values()):
            await self._end(watch)

    async def _follow(self, watch: InterestWatch) -> None:
        try:
            async with aclosing(self._closures.changes(watch.scope)) as changes:  # type: ignore[type-var]
                async for interest in changes:
                    await watch.notify(interest)
        except EventHubError as error:
            self._watches.pop(watch.name, None)
            await self._socket.send_message({**refusal(error), "interest": watch.name})
        except OSError:
            pass  # the reader disconnected

    async def _refuse(self, watch: InterestWatch, error: EventHubError) -> None:
        await self._end(watch)
        await self._socket.send_message({**refusal(error), "interest": watch.name})

    async def _end(self, watch: InterestWatch) -> None:
        self._watches.pop(watch.name, None)
        task, watch.task = watch.task, None  # the task refers to the watch
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _find(self, name: str) -> InterestWatch:
        found = self._watches.get(name)
        if found is None:
            raise UnknownInterest(interest=name)
        return found
