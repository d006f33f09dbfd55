"""The time slices of dry runs and searches in a web process, so that events take precedence.
Plain module.
"""

import asyncio

from eventhub.base import limits


class TimeSlice:
    """A time slice of work: when `over` is true, the worker yields the event loop by `rest`."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._until_s = self._clock() + limits.EXPLAIN_SLICE_S

    @property
    def over(self) -> bool:
        return self._clock() >= self._until_s

    async def rest(self) -> None:
        await asyncio.sleep(0)
        self._until_s = self._clock() + limits.EXPLAIN_SLICE_S
