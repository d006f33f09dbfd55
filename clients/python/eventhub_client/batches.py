"""Batches of the items that have arrived so far. Plain module."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class _End(NamedTuple):
    """The end of the items, with their error if they failed."""

    error: Exception | None = None


async def batches(items: AsyncIterator[T], most: int) -> AsyncIterator[list[T]]:
    """Yield the items that have arrived since the last batch: at least one, at most `most`.

    The next batch collects while the caller handles one, bounded by `most` too. Closes `items`;
    raises their error after the last batch.
    """
    arrived: asyncio.Queue[T | _End] = asyncio.Queue(most)
    reading = asyncio.create_task(_read(items, arrived))
    try:
        end: _End | None = None
        while end is None:
            batch: list[T] = []
            while not batch or (len(batch) < most and not arrived.empty()):
                item = await arrived.get()
                if isinstance(item, _End):
                    end = item
                    break
                batch.append(item)
            if batch:
                yield batch
        if end.error is not None:
            raise end.error
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(items: AsyncIterator[T], arrived: asyncio.Queue[T | _End]) -> None:
    error = None
    try:
        async with aclosing(items):  # type: ignore[type-var]
            async for item in items:
                await arrived.put(item)
    except Exception as raised:
        error = raised
    await arrived.put(_End(error))
