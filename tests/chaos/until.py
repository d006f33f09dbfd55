"""Waits for a condition, with a bound and a reason: nothing here sleeps and hopes."""

import asyncio
import time
from collections.abc import Awaitable, Callable

POLL_S = 0.01


class NeverCame(Exception):
    """A condition did not come true in time."""


async def until(holds: Callable[[], bool], what: str, patience_s: float) -> float:
    """Wait until it holds; returns the seconds it took. Raises NeverCame."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > patience_s:
            raise NeverCame(f"waited {patience_s:.0f} s in vain for {what}")
        await asyncio.sleep(POLL_S)
    return time.monotonic() - began


async def until_true(asked: Callable[[], Awaitable[bool]], what: str, patience_s: float) -> None:
    """The same for a question that must be awaited."""
    began = time.monotonic()
    while not await asked():
        if time.monotonic() - began > patience_s:
            raise NeverCame(f"waited {patience_s:.0f} s in vain for {what}")
        await asyncio.sleep(POLL_S)
