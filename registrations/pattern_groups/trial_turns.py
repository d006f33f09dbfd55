"""The dry runs of patterns and the computations of partial matches that share a web process: few at
once, one for each client, and together half of the processor's time. Plain module.

They run in threads, beside the event loop that serves emits and listeners. Only one thread of a
process runs at a time, so a trial pauses after each slice; else others would wait for it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eventhub.base import limits
from eventhub.base.errors import Unavailable

Pause = Callable[[], None]  # called between two steps of a trial
Owner = tuple[int, int]  # zone and client


class Trials:
    """The trials that run in one process. Concurrency contract: any thread."""

    def __init__(self) -> None:
        self._running: set[Owner] = set()
        self._changed = threading.Condition()

    @contextmanager
    def run(self, owner: Owner) -> Iterator[Pause]:
        """Run a trial, which calls what is yielded between its steps. Raises Unavailable if another
        one of its client, or too many others, run for longer than a moment.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._has_place(owner), limits.PATTERN_TRIAL_WAIT_S_MAX
            ):
                message = "The hub computes other dry runs and partial matches; try again soon."
                raise Unavailable(message)
            self._running.add(owner)
        try:
            yield self._paused()
        finally:
            with self._changed:
                self._running.remove(owner)
                self._changed.notify_all()

    def _has_place(self, owner: Owner) -> bool:
        return owner not in self._running and len(self._running) < limits.PATTERN_TRIALS_MAX

    def _paused(self) -> Pause:
        began_s = time.thread_time()

        def pause() -> None:
            nonlocal began_s
            taken_s = time.thread_time() - began_s
            if taken_s >= limits.PATTERN_SLICE_S:
                time.sleep(taken_s * (2 * len(self._running) - 1))
                began_s = time.thread_time()

        return pause


trials = Trials()
