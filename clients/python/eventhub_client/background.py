"""An event loop in a thread of its own, for callers that have none. Plain module."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Background:
    """The event loop and its thread. Ctrl-C during `run` cancels the awaited call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Awaitable[T]) -> T:
        """Wait for a result. Raises what the awaitable raises."""
        return self._call(lambda: awaitable)

    def _call(self, function: Callable[[], Awaitable[T]]) -> T:
        call = _Call(function)
        try:
            self._loop.call_soon_threadsafe(call.start)
            task = call.ended.get()
        except BaseException:  # Ctrl-C: the call has ended before the caller continues
            cancelled: SimpleQueue[object] = SimpleQueue()
            self._loop.call_soon_threadsafe(call.cancel, cancelled)
            cancelled.get()
            raise
        return task.result()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an async iterator; close it when the caller stops."""
        generator = cast("AsyncGenerator[T, None]", items)
        try:
            while True:
                try:
                    item = self._call(generator.__anext__)
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._loop.is_closed():  # otherwise it was closed with the loop
                self._call(generator.aclose)

    def close(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Call(Generic[T]):
    """A call in the loop's thread. Only that thread runs the methods, so Ctrl-C cannot interrupt
    them. The queues are implemented in C: Ctrl-C inside a lock of Python's would leave it locked.
    """

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self.ended: SimpleQueue[asyncio.Task[T]] = SimpleQueue()
        self._function = function
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(_awaited(self._function))
        self._task.add_done_callback(self._finish)

    def cancel(self, ended: SimpleQueue[object]) -> None:
        if self._task is None or self._task.done():
            ended.put(None)
        else:
            self._task.add_done_callback(ended.put)
            self._task.cancel()

    def _finish(self, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            task.exception()  # marks it as retrieved, even if Ctrl-C kept the caller from it
        self.ended.put(task)


async def _awaited(function: Callable[[], Awaitable[T]]) -> T:
    return await function()
