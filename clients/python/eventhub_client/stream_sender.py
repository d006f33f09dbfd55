"""How an outbox releases what waits for one stream: in order, again until it is stored.
Plain module.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from eventhub.base import limits
from eventhub.base.clock import Clock, SystemClock
from eventhub_client.listening import pause_s
from eventhub_client.outbox_file import DeadLetter, OutboxFile, Queued
from eventhub_client.refusal_action import RefusalAction, action_after
from eventhub_client.reissue import ReissueTimers
from eventhub_client.types import HubProblem

T = TypeVar("T")
_log = logging.getLogger(__name__)
Renumber = Callable[[Queued], Awaitable[Queued]]
Send = Callable[[str, Sequence[Queued]], Awaitable[HubProblem | None]]


class OutboxOptions(NamedTuple):
    """How an outbox behaves. `on_dead` is told of each event that the hub will never take."""

    application: tuple[str, ...] = ()  # of events that name none; empty: as the file says
    interval_s: float = limits.OUTBOX_INTERVAL_S  # FOX's Δt
    timeout_s: float = limits.OUTBOX_TIMEOUT_S  # FOX's T
    on_dead: Callable[[DeadLetter], None] | None = None
    clock: Clock = SystemClock()


class OutboxContext:
    """What the lanes of an outbox share: its file, the way to the hub, who is told."""

    def __init__(self, send: Send, renumbered: Renumber, terms: OutboxOptions) -> None:
        self.send = send
        self.renumbered = renumbered
        self.terms = terms
        self.held: dict[str, HubProblem] = {}  # by stream: what somebody has to mend
        self.changed = asyncio.Condition()
        self.file: OutboxFile
        self._thread = ThreadPoolExecutor(1, "outbox")  # the file is its alone

    async def open(self, path: Path) -> OutboxFile:
        try:
            self.file = await self.disk(OutboxFile, path)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        return self.file

    async def close(self) -> None:
        await self.disk(self.file.close)
        self._thread.shutdown(wait=False)

    async def disk(self, function: Callable[..., T], *args: object) -> T:
        """A call to the file, one after the other."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(function, *args))

    async def tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class StreamSender:
    """One stream's way out. `run` ends when nothing waits."""

    def __init__(self, stream: str, desk: OutboxContext) -> None:
        self._stream = stream
        self._desk = desk

    async def run(self) -> None:
        size = limits.OUTBOX_BATCH_EVENTS
        while True:
            batch = await self._desk.disk(
                self._desk.file.batch, self._stream, size, limits.OUTBOX_BATCH_BYTES
            )
            if not batch:
                return
            verdict = await self._release(batch)
            halved = verdict is not None and verdict.kind == "halve"
            size = max(len(batch) // 2, 1) if halved else limits.OUTBOX_BATCH_EVENTS

    async def _release(self, batch: Sequence[Queued]) -> RefusalAction | None:
        """Send a batch again and again until the hub has stored it (None), or what else is to
        become of it, done already but for `halve`.
        """
        terms, numbers = self._desk.terms, [queued.number for queued in batch]
        timers: ReissueTimers[int] = ReissueTimers(
            terms.clock, interval_s=terms.interval_s, timeout_s=terms.timeout_s
        )
        timers.issued(numbers)
        for tries in itertools.count():
            sent = asyncio.ensure_future(self._desk.send(self._stream, batch))
            try:
                while not sent.done() and not timers.due():
                    await asyncio.wait({sent}, timeout=terms.interval_s)
            finally:
                sent.cancel()
                await asyncio.gather(sent, return_exceptions=True)
            if sent.cancelled():  # silence: the same again
                continue
            verdict = await self._settle(batch, sent.result())
            if verdict is None or verdict.kind not in ("wait", "hold"):
                return verdict
            timers.wait(numbers, verdict.after_s or pause_s(tries))
            while not timers.due():  # noqa: ASYNC110 - time itself is waited for
                await asyncio.sleep(terms.interval_s)
        raise AssertionError("unreachable")

    async def _settle(
        self, batch: Sequence[Queued], problem: HubProblem | None
    ) -> RefusalAction | None:
        """Do what the hub's answer asks for."""
        desk = self._desk
        if problem is None:
            await desk.disk(desk.file.remove, [queued.number for queued in batch])
            desk.held.pop(self._stream, None)
            return None
        verdict = action_after(problem, len(batch))
        if verdict.kind == "bury":
            queued = batch[verdict.at]
            dead = await desk.disk(desk.file.bury, self._stream, queued, problem.problem)
            _log.error("the hub will not take event %s: %s", queued.number, problem)
            if desk.terms.on_dead is not None:
                desk.terms.on_dead(dead)
        elif verdict.kind == "renumber":
            await desk.disk(desk.file.rewrite, await desk.renumbered(batch[verdict.at]))
        elif verdict.kind == "hold":
            desk.held[self._stream] = problem
        if verdict.kind != "hold":
            desk.held.pop(self._stream, None)
        await desk.tell()
        return verdict
