"""Keeps a background task going: an error that nobody foresaw is logged, and the work begins anew.
A task that ended silently would leave a process that answers and hears nothing. Plain module.
"""

import asyncio
from collections.abc import Awaitable, Callable

from eventhub.base import limits
from eventhub.base.logs import get_logger

log = get_logger(__name__)


async def endless(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run the work until cancelled. What it foresees, it handles itself."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("background_task_failed", task=name)
        await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
