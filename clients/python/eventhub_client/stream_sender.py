"""Sends the queued events of one stream of an outbox: in order, repeatedly until they are stored.
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
from eventhub_client.reissue_timers import ReissueTimers
from eventhub_client.types import HubProblem

T = TypeVar("T")
_log = logging.getLogger(__name__)
Renumber = Callable[[Queued], Awaitable[Queued]]
Send = Callable[[str, Sequence[Queued]], Awaitable[HubProblem | None]]


class OutboxOptions(NamedTuple):
    """The options of an outbox. `on_dead_letter` gets each event that the hub will never accept."""

    application: tuple[str, ...] = ()  # of events that name none; empty: the profile's
    interval_s: float = limits.OUTBOX_INTERVAL_S  # FOX's Δt
    timeout_s: float = limits.OUTBOX_TIMEOUT_S  # FOX's T
    on_dead_letter: Callable[[DeadLetter], None] | None = None
    clock: Clock = SystemClock()


class OutboxContext:
    """The parts that the senders of an outbox share: its file, the connection, its options."""

    def __init__(self, send: Send, renumbered: Renumber, options: OutboxOptions) -> None:
        self.send = send
        self.renumbered = renumbered
        self.options = options
        self.blocked: dict[str, HubProblem] = {}  # by stream: needs a manual action
        self.changed = asyncio.Condition()
        self.file: OutboxFile
        self._thread = ThreadPoolExecutor(1, "outbox")  # the only one that uses the file

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
        """Call a function of the file in its thread, one call at a time."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(function, *args))

    async def notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class StreamSender:
    """The sender of one stream. `run` ends when the queue is empty."""

    def __init__(self, stream: str, context: OutboxContext) -> None:
        self._stream = stream
        self._context = context

    async def run(self) -> None:
        size = limits.OUTBOX_BATCH_EVENTS
        while True:
            batch = await self._context.disk(
                self._context.file.batch, self._stream, size, limits.OUTBOX_BATCH_BYTES
            )
            if not batch:
                return
            action = await self._release(batch)
            halved = action is not None and action.kind == "halve"
            size = max(len(batch) // 2, 1) if halved else limits.OUTBOX_BATCH_EVENTS

    async def _release(self, batch: Sequence[Queued]) -> RefusalAction | None:
        """Send a batch until the hub has stored it (None) or refuses it for good: the action,
        carried out already except `halve`.
        """
        options, numbers = self._context.options, [queued.number for queued in batch]
        timers: ReissueTimers[int] = ReissueTimers(
            options.clock, interval_s=options.interval_s, timeout_s=options.timeout_s
        )
        timers.issued(numbers)
        for attempt in itertools.count():
            sent = asyncio.ensure_future(self._context.send(self._stream, batch))
            try:
                while not sent.done() and not timers.due():
                    await asyncio.wait({sent}, timeout=options.interval_s)
            finally:
                sent.cancel()
                await asyncio.gather(sent, return_exceptions=True)
            if sent.cancelled():  # no answer: the same again
                continue
            action = await self._settle(batch, sent.result())
            if action is None or action.kind not in ("wait", "block"):
                return action
            timers.wait(numbers, action.after_s or pause_s(attempt))
            while not timers.due():  # noqa: ASYNC110 - time itself is waited for
                await asyncio.sleep(options.interval_s)
        raise AssertionError("unreachable")

    async def _settle(
        self, batch: Sequence[Queued], problem: HubProblem | None
    ) -> RefusalAction | None:
        """Carry out what the hub's answer requires."""
        context = self._context
        if problem is None:
            await context.disk(context.file.remove, [queued.number for queued in batch])
            context.blocked.pop(self._stream, None)
            return None
        action = action_after(problem, len(batch))
        if action.kind == "dead_letter":
            queued = batch[action.at]
            letter = await context.disk(
                context.file.dead_letter, self._stream, queued, problem.problem
            )
            _log.error("the hub refuses event %s for good: %s", queued.number, problem)
            if context.options.on_dead_letter is not None:
                context.options.on_dead_letter(letter)
        elif action.kind == "renumber":
            await context.disk(context.file.rewrite, await context.renumbered(batch[action.at]))
        elif action.kind == "block":
            context.blocked[self._stream] = problem
        if action.kind != "block":
            context.blocked.pop(self._stream, None)
        await context.notify()
        return action
