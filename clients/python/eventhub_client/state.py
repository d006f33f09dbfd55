"""The state of a keyed stream as a mapping that stays current: a snapshot, every event folded into
it, a new snapshot after a gap. Plain module.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing

from eventhub_client.position import Item
from eventhub_client.types import Cursor, Delivered, StateItem


class Fold:
    """The rules of folding, without I/O."""

    def __init__(self) -> None:
        self.items: dict[str, StateItem] = {}
        self.cursor: Cursor | None = None

    def take(self, item: Item) -> None:
        """Apply an item: a snapshot replaces everything; an event with a key replaces the key's
        event, a tombstone removes it.
        """
        self.cursor = item.cursor
        if not isinstance(item, Delivered):
            self.items = {one.key: one for one in item.items}
            return
        key = item.event.get("key", "")
        if not key:
            return
        if item.event.get("tombstone"):
            self.items.pop(key, None)
        else:
            self.items[key] = StateItem(
                key, item.segment, item.sequence, item.event, item.appended_at
            )


class State(Mapping[str, StateItem]):
    """`async with hub.state("prices") as state:` is complete when the block begins, and follows the
    stream inside it; it is the state at `cursor`.

    `reached` and the end of the block raise the error that ended the listener.
    """

    def __init__(self, listen: Callable[[], AsyncIterator[Item]]) -> None:
        self._listen = listen
        self._fold = Fold()
        self._moved = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    @property
    def cursor(self) -> Cursor:
        if self._fold.cursor is None:
            raise RuntimeError("Use the state in `async with`.")
        return self._fold.cursor

    def __getitem__(self, key: str) -> StateItem:
        return self._fold.items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._fold.items))  # another thread may iterate

    def __len__(self) -> int:
        return len(self._fold.items)

    async def reached(self, sequence: int) -> None:
        """Wait until the state includes the event of this sequence or a later one."""
        await self._until(lambda: self.cursor.sequence >= sequence)

    async def changed(self) -> None:
        """Wait until the state has advanced."""
        known = self.cursor
        await self._until(lambda: self.cursor != known)

    async def __aenter__(self) -> "State":
        self._task = asyncio.create_task(self._follow())
        try:
            await self._until(lambda: self._fold.cursor is not None)
        except BaseException:
            self._task.cancel()
            raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._task is None:
            return
        self._task.cancel()
        [ended] = await asyncio.gather(self._task, return_exceptions=True)
        if isinstance(ended, Exception) and error is None:
            raise ended

    async def _follow(self) -> None:
        try:
            async with aclosing(self._listen()) as items:  # type: ignore[type-var]
                async for item in items:
                    self._fold.take(item)
                    async with self._moved:
                        self._moved.notify_all()
        finally:
            self._ended = True
            async with self._moved:
                self._moved.notify_all()

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: condition() or self._ended)
        if self._task is not None and not condition():
            await self._task
