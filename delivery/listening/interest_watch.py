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
from delivery.listening.messages import Forget, InterestMessage, Still
from delivery.listening.protocol import refusal
from eventhub.access.authorizer import Authorizer
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import EventHubError, TooManyRequests
from registrations.filters.closure.shapes import Shape, parse_shape
from registrations.interest.live import Closures, Demand
from registrations.interest.routes import answer_of, audience_of, require_to_ask, shown
from registrations.interest.stored import EventsRequest

Say = Callable[[dict[str, Any]], Awaitable[None]]


class InterestWatch:
    """One interest, and what its socket was told of it."""

    def __init__(self, message: InterestMessage, asked: EventsRequest, say: Say) -> None:
        self.name = message.interest
        self.stream = message.stream
        self.asked = asked
        self.task: asyncio.Task[None] | None = None
        self._shape: Shape | None = None if message.shape is None else parse_shape(message.shape)
        self._say = say
        self._telling = asyncio.Lock()
        self._made = -1  # number of the demand it knows
        self._told: dict[str, Any] = {}

    async def tell(self, demand: Demand) -> None:
        """Say what is wanted, if that is not what was said last."""
        async with self._telling:
            if demand.made < self._made:
                return
            self._made = demand.made
            found = await self._found(demand)
            if found != self._told:
                self._told = found
                sequence = {"sequence": demand.through}
                head = {"op": "interest", "interest": self.name, "stream": self.stream}
                await self._say({**head, **found, **sequence})

    async def _found(self, demand: Demand) -> dict[str, Any]:
        if self._shape is None:
            return {name: told for name, told in shown(demand).items() if name != "sequence"}
        return {"wanted": await answer_of(demand, self._shape), "quench": demand.quench}


class InterestWatches:
    """Those of one socket by name."""

    def __init__(self, authorizer: Authorizer, closures: Closures, say: Say) -> None:
        self._authorizer = authorizer
        self._closures = closures
        self._say = say
        self._watches: dict[str, InterestWatch] = {}

    async def begin(self, principal: Principal, message: InterestMessage) -> None:
        """Raises InterestExists, TooManyRequests, Forbidden, UnknownStream, InvalidField's kin."""
        if message.interest in self._watches:
            raise InterestExists(interest=message.interest)
        if len(self._watches) >= limits.INTERESTS_PER_SOCKET_MAX:
            most = limits.INTERESTS_PER_SOCKET_MAX
            raise TooManyRequests("This socket asks for as many as it may.", interests_max=most)
        audience = audience_of(message.audience)
        require_to_ask(principal, message.stream)
        stream = await self._authorizer.stream(principal, message.stream)
        watch = InterestWatch(message, EventsRequest(stream.id, audience), self._say)
        self._watches[watch.name] = watch
        watch.task = asyncio.create_task(self._follow(watch))

    async def still(self, message: Still) -> None:
        """Say what holds at this moment, and its tag. Raises UnknownInterest,
        DatabaseUnavailable.
        """
        watch = self._find(message.interest)
        demand = await self._closures.current(watch.asked)
        await watch.tell(demand)
        answer = {"op": "still", "interest": watch.name, "id": message.id, "tag": demand.tag}
        await self._say({**answer, "quench": demand.quench, "sequence": demand.through})

    async def forget(self, message: Forget) -> None:
        """Raises UnknownInterest."""
        await self._end(self._find(message.interest))
        await self._say({"op": "forgotten", "interest": message.interest})

    async def recheck(self, principal: Principal) -> None:
        """End those that the socket may not have any more."""
        for watch in list(self._watches.values()):
            try:
                require_to_ask(principal, watch.stream)
            except EventHubError as error:
                await self._refuse(watch, error)

    async def close(self) -> None:
        for watch in list(self._watches.values()):
            await self._end(watch)

    async def _follow(self, watch: InterestWatch) -> None:
        try:
            async with aclosing(self._closures.changes(watch.asked)) as changes:  # type: ignore[type-var]
                async for demand in changes:
                    await watch.tell(demand)
        except EventHubError as error:
            self._watches.pop(watch.name, None)
            await self._say({**refusal(error), "interest": watch.name})
        except OSError:
            pass  # the reader went away

    async def _refuse(self, watch: InterestWatch, error: EventHubError) -> None:
        await self._end(watch)
        await self._say({**refusal(error), "interest": watch.name})

    async def _end(self, watch: InterestWatch) -> None:
        self._watches.pop(watch.name, None)
        if watch.task is not None:
            watch.task.cancel()
            await asyncio.gather(watch.task, return_exceptions=True)

    def _find(self, name: str) -> InterestWatch:
        found = self._watches.get(name)
        if found is None:
            raise UnknownInterest(interest=name)
        return found
