"""Why a run is to end before its time: asked by whoever may, heard by whoever does its work.
Plain module.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkjobs.runs.rows import Ending

CANCELLED = Ending("cancelled", "cancelled", "It was cancelled.")
TERMINATED = Ending("interrupted", "interrupted", "Its process was told to end.")


class RunStopped(Exception):
    """The run's work ends here; `Stop.why` says why."""


class StopSignal:
    """The first word counts. Any thread and any signal's handler may ask."""

    def __init__(self) -> None:
        self.why: Ending | None = None
        self._too_late = False
        self._end: Callable[[], None] | None = None
        self._changing = threading.RLock()  # a handler may interrupt its own thread

    def ask(self, why: Ending) -> None:
        with self._changing:
            if self.why is None:
                self.why = why
            if self._end is not None:
                self._end()

    def check(self) -> None:
        """Raises Stopped once it was asked for, unless it is too late."""
        if self.why is not None and not self._too_late:
            raise RunStopped

    def forget(self) -> None:
        """It is too late: what is done from here on is not taken back, so the work goes on to its
        end, whoever asks.
        """
        self._too_late = True

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """In the block, asking calls `end`, which may be called again."""
        with self._changing:
            self._end = end
            if self.why is not None:
                end()
        try:
            yield
        finally:
            self._end = None
