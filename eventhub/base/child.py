"""A process of its own for a job of a worker, so that it takes neither memory nor turns from what
else the worker does. Plain module.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Child:
    """One run at a time, and none after `stop`. Any thread may stop it."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._running = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """False at once if a run is under way or it is stopped."""
        if self.is_stopped or not self._running.acquire(blocking=False):
            yield False
            return
        try:
            yield True
        finally:
            self._running.release()

    @contextmanager
    def started(self, module: str, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A process of this environment, waited for at the end; what it writes is a pipe."""
        # its own metrics would leave a file for every run; this process counts for it
        env = {
            name: text for name, text in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"
        }
        command = [sys.executable, "-m", module, *words]
        # a session of its own, so that its share of the cores can be made small as a whole
        with subprocess.Popen(  # noqa: S603
            command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            self._process = process
            try:
                if self.is_stopped:
                    process.terminate()
                yield process
            finally:
                self._process = None

    def stop(self) -> None:
        """End the process, if there is one."""
        self.is_stopped = True
        process = self._process
        if process is not None:
            process.terminate()
