"""An event loop in a thread of its own, for callers that have none. Plain; asyncio."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from typing import TypeVar, cast

T = TypeVar("T")


class Background:
    """`run` waits for a result; Ctrl-C while it waits cancels what it waits for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Awaitable[T]) -> T:
        """Raises what the awaitable raises."""
        running: list[asyncio.Task[T]] = []
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable, running), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():  # Ctrl-C: what was waited for has ended before the caller goes on
                asyncio.run_coroutine_threadsafe(_ended(running), self._loop).result()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """An async iterator as a plain one; closed when the caller leaves it."""
        generator = cast("AsyncGenerator[T, None]", items)
        try:
            while True:
                try:
                    item = self.run(anext(generator))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._loop.is_closed():  # else it was closed with the loop
                self.run(generator.aclose())

    def close(self) -> None:
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(awaitable: Awaitable[T], running: list[asyncio.Task[T]]) -> T:
    task = asyncio.current_task()
    if task is not None:
        running.append(cast("asyncio.Task[T]", task))
    return await awaitable


async def _ended(running: list[asyncio.Task[T]]) -> None:
    if running:
        await asyncio.wait(running)
