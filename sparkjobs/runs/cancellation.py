"""The signal that stops a run early: any thread requests it, and the run's work checks for it.
Plain module.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkjobs.runs.statements import Ending

CANCELLED = Ending("cancelled", "cancelled", "The run was cancelled.")
TERMINATED = Ending("interrupted", "interrupted", "The run's process was terminated.")


class RunStopped(Exception):
    """The run's work stops here; `StopSignal.ending` has the reason."""


class StopSignal:
    """The request to stop a run; the first one counts. Threads and signal handlers may request."""

    def __init__(self) -> None:
        self.ending: Ending | None = None
        self._is_too_late = False
        self._end: Callable[[], None] | None = None
        self._changing = threading.RLock()  # a handler may interrupt its own thread

    def request(self, ending: Ending) -> None:
        with self._changing:
            if self.ending is None:
                self.ending = ending
            if self._end is not None:
                self._end()

    def check(self) -> None:
        """Raise RunStopped if a stop was requested, unless it is too late."""
        if self.ending is not None and not self._is_too_late:
            raise RunStopped

    def disarm(self) -> None:
        """Ignore requests from here on, because the work can no longer be undone."""
        self._is_too_late = True

    @contextmanager
    def calling(self, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` at each request within the block; it may be called repeatedly."""
        with self._changing:
            self._end = end
            if self.ending is not None:
                end()
        try:
            yield
        finally:
            self._end = None
