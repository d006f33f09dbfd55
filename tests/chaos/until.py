"""Waits for a condition, with a bound and a reason, instead of sleeping."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

POLL_S = 0.03


class NeverCame(Exception):
    """A condition did not come true in time."""


async def until(holds: Callable[[], bool], what: str, patience_s: float) -> float:
    """Wait until the condition holds; return the seconds it took. Raise NeverCame."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > patience_s:
            raise NeverCame(f"waited {patience_s:.0f} s in vain for {what}")
        await asyncio.sleep(POLL_S)
    return time.monotonic() - began


async def until_true(asked: Callable[[], Awaitable[bool]], what: str, patience_s: float) -> None:
    """Wait until an awaitable condition holds; see `until`."""
    began = time.monotonic()
    while not await asked():
        if time.monotonic() - began > patience_s:
            raise NeverCame(f"waited {patience_s:.0f} s in vain for {what}")
        await asyncio.sleep(POLL_S)


def require_running(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Raise the error of a task that ended: a mistake of the harness."""
    for task in tasks:
        if task.done():
            task.result()
            raise RuntimeError(f"{task.get_name()} ended")
