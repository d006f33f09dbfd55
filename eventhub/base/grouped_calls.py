"""Calls that are made together: a statement for many costs little more than one for each. Plain
module.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


class GroupedCalls(Generic[Request, Result]):
    """Calls of one function, which takes many requests and returns their results in order. A
    request that comes while others are under way waits for the next group.

    Concurrency contract: one event loop. Groups are performed one after the other, in the order in
    which their requests came.
    """

    def __init__(
        self, perform: Callable[[Sequence[Request]], Awaitable[Sequence[Result]]], size_max: int
    ) -> None:
        self._perform = perform
        self._size_max = size_max
        self._waiting: list[tuple[Request, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    def submit(self, request: Request) -> asyncio.Future[Result]:
        """Return the future of a result. A request whose future is cancelled before its group
        begins is left out; an exception of the function is that of all requests of the group.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return future

    async def _run(self) -> None:
        try:
            while self._waiting:
                group = self._waiting[: self._size_max]
                del self._waiting[: self._size_max]
                await self._perform_group([one for one in group if not one[1].done()])
        finally:
            self._task = None

    async def _perform_group(self, group: list[tuple[Request, asyncio.Future[Result]]]) -> None:
        if not group:
            return
        try:
            results = await self._perform([request for request, _ in group])
        except BaseException as error:
            for _, future in group:
                if future.done():
                    continue
                if isinstance(error, Exception):
                    future.set_exception(error)
                else:
                    future.cancel()
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), result in zip(group, results, strict=True):
            if not future.done():
                future.set_result(result)
