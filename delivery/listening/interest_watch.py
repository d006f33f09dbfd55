"""What one socket wants to know of interest, as a producer: it is told what is wanted of streams,
and again whenever that changes. Plain module.

Concurrency contract: one event loop; each watch has a task of its own, and a lock that keeps what
is told in order: what was told last is never older than what was told before.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from delivery.listening.errors import InterestExists, UnknownInterest
from delivery.listening.messages import Forget, InterestIn, Still
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

Say = Callable[[dict[str, Any]], Awaitable[None]]


class Watch:
    """One interest, and what its socket was told of it."""

    def __init__(self, message: InterestIn, scope: InterestScope, say: Say) -> None:
        self.name = message.interest
        self.stream = message.stream
        self.scope = scope
        self.task: asyncio.Task[None] | None = None
        self._shape: Shape | None = None if message.shape is None else parse_shape(message.shape)
        self._say = say
        self._telling = asyncio.Lock()
        self._revision = -1  # of the interest that the reader knows
        self._told: dict[str, Any] = {}

    async def tell(self, interest: StreamInterest) -> None:
        """Say what is wanted, if that is not what was said last."""
        async with self._telling:
            if interest.revision < self._revision:
                return
            self._revision = interest.revision
            found = await self._found(interest)
            if found != self._told:
                self._told = found
                sequence = {"sequence": interest.through}
                head = {"op": "interest", "interest": self.name, "stream": self.stream}
                await self._say({**head, **found, **sequence})

    async def _found(self, interest: StreamInterest) -> dict[str, Any]:
        if self._shape is None:
            fields = interest_json(interest).items()
            return {name: value for name, value in fields if name != "sequence"}
        return {"interested": await interested_in(interest, self._shape), "quench": interest.quench}


class Watches:
    """Those of one socket by name."""

    def __init__(self, authorizer: Authorizer, closures: Closures, say: Say) -> None:
        self._authorizer = authorizer
        self._closures = closures
        self._say = say
        self._watches: dict[str, Watch] = {}

    async def begin(self, principal: Principal, message: InterestIn) -> None:
        """Raises InterestExists, TooManyRequests, Forbidden, UnknownStream, InvalidField's kin."""
        if message.interest in self._watches:
            raise InterestExists(interest=message.interest)
        if len(self._watches) >= limits.INTERESTS_PER_SOCKET_MAX:
            most = limits.INTERESTS_PER_SOCKET_MAX
            raise TooManyRequests("This socket asks for as many as it may.", interests_max=most)
        audience = audience_of(message.audience)
        require_producer(principal, message.stream)
        stream = await self._authorizer.stream(principal, message.stream)
        watch = Watch(message, InterestScope(stream.id, audience), self._say)
        self._watches[watch.name] = watch
        watch.task = asyncio.create_task(self._follow(watch))

    async def still(self, message: Still) -> None:
        """Say what holds at this moment, and its tag. Raises UnknownInterest,
        DatabaseUnavailable.
        """
        watch = self._find(message.interest)
        interest = await self._closures.current(watch.scope)
        await watch.tell(interest)
        answer = {"op": "still", "interest": watch.name, "id": message.id, "tag": interest.tag}
        await self._say({**answer, "quench": interest.quench, "sequence": interest.through})

    async def forget(self, message: Forget) -> None:
        """Raises UnknownInterest."""
        await self._end(self._find(message.interest))
        await self._say({"op": "forgotten", "interest": message.interest})

    async def recheck(self, principal: Principal) -> None:
        """End those that the socket may not have any more."""
        for watch in list(self._watches.values()):
            try:
                require_producer(principal, watch.stream)
            except EventHubError as error:
                await self._refuse(watch, error)

    async def close(self) -> None:
        for watch in list(self._watches.values()):
            await self._end(watch)

    async def _follow(self, watch: Watch) -> None:
        try:
            async with aclosing(self._closures.changes(watch.scope)) as changes:  # type: ignore[type-var]
                async for interest in changes:
                    await watch.tell(interest)
        except EventHubError as error:
            self._watches.pop(watch.name, None)
            await self._say({**refusal(error), "interest": watch.name})
        except OSError:
            pass  # the reader went away

    async def _refuse(self, watch: Watch, error: EventHubError) -> None:
        await self._end(watch)
        await self._say({**refusal(error), "interest": watch.name})

    async def _end(self, watch: Watch) -> None:
        self._watches.pop(watch.name, None)
        if watch.task is not None:
            watch.task.cancel()
            await asyncio.gather(watch.task, return_exceptions=True)

    def _find(self, name: str) -> Watch:
        found = self._watches.get(name)
        if found is None:
            raise UnknownInterest(interest=name)
        return found
