"""An event loop in a thread of its own, for callers that have none. Plain module."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Background:
    """`run` waits for a result; Ctrl-C while it waits cancels what it waits for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Awaitable[T]) -> T:
        """Raises what the awaitable raises."""
        return self._call(lambda: awaitable)

    def _call(self, function: Callable[[], Awaitable[T]]) -> T:
        call = _Call(function)
        try:
            self._loop.call_soon_threadsafe(call.start)
            task = call.ended.get()
        except BaseException:  # Ctrl-C: what was begun has ended before the caller goes on
            cancelled: SimpleQueue[object] = SimpleQueue()
            self._loop.call_soon_threadsafe(call.cancel, cancelled)
            cancelled.get()
            raise
        return task.result()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """An async iterator as a plain one; closed when the caller leaves it."""
        generator = cast("AsyncGenerator[T, None]", items)
        try:
            while True:
                try:
                    item = self._call(generator.__anext__)
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._loop.is_closed():  # else it was closed with the loop
                self._call(generator.aclose)

    def close(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Call(Generic[T]):
    """A function for the loop's thread, which alone calls the methods: Ctrl-C cannot cut them.

    The queues are C: Ctrl-C in a lock of Python's would leave it locked.
    """

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self.ended: SimpleQueue[asyncio.Task[T]] = SimpleQueue()
        self._function = function
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(_awaited(self._function))
        self._task.add_done_callback(self._tell)

    def cancel(self, ended: SimpleQueue[object]) -> None:
        if self._task is None or self._task.done():
            ended.put(None)
        else:
            self._task.add_done_callback(ended.put)
            self._task.cancel()

    def _tell(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # counts as seen, also where Ctrl-C keeps the caller from seeing it
        self.ended.put(task)


async def _awaited(function: Callable[[], Awaitable[T]]) -> T:
    return await function()
