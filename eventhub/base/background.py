"""Background tasks that never end silently: an unexpected error is logged, and the work is
restarted. Without it a process could go on answering while it no longer receives anything. Plain
module.
"""

import asyncio
from collections.abc import Awaitable, Callable

from eventhub.base import limits
from eventhub.base.logs import get_logger

log = get_logger(__name__)


async def run_forever(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run the work until cancelled, and again whenever it returns or raises."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("background_task_failed", task=name)
        await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
