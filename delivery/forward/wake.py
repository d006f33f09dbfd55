"""Tells somebody that deliveries wait, and never waits for the telling. Plain.

A hint only: whoever drains looks by itself as well.
"""

import asyncio
from collections.abc import Callable

from eventhub import limits
from eventhub.logs import get_logger

log = get_logger(__name__)


class Wake:
    """Calls `woken` in a thread, at most every 50 ms and one call at a time."""

    def __init__(self, woken: Callable[[], None]) -> None:
        self._woken = woken
        self._some = asyncio.Event()

    def hint(self) -> None:
        self._some.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            try:
                await asyncio.to_thread(self._woken)
            except Exception as error:
                log.info("wake_failed", error=type(error).__name__)
            await asyncio.sleep(limits.WAKE_INTERVAL_S)
