"""A child process for a worker's job, so that the job takes neither memory nor processor time from
the worker's other tasks. Plain module.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ChildProcess:
    """Runs one process at a time, and none after `stop`, which any thread may call."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._running = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Reserve the child for a block; yields False at once if it is running or stopped."""
        if self.is_stopped or not self._running.acquire(blocking=False):
            yield False
            return
        try:
            yield True
        finally:
            self._running.release()

    @contextmanager
    def started(self, module: str, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a Python module with this environment, its output in a pipe; wait for its end when
        the block is left.
        """
        # metrics of its own would leave a file for every run; this process counts for it
        env = {
            name: text for name, text in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"
        }
        command = [sys.executable, "-m", module, *words]
        # a session of its own, so that its processor share can be reduced as a whole
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
        """Terminate the process, if one runs."""
        self.is_stopped = True
        process = self._process
        if process is not None:
            process.terminate()
