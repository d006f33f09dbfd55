"""The output of the hub's processes, each line after the name of its process; coloured only on a
terminal. Plain module.
"""

import io
import os
import sys
import threading
import time
from typing import IO

NAME_WIDTH = 9
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92)
_HUB = "hub"
DRAIN_S_MAX = 2.0  # for the last lines of processes that have ended


class Output:
    """Whole lines of several threads to one stream. If the stream fails, lines are lost, because
    processes must never block on it: the hub's own lines then go to standard error, and the number
    of lost lines is printed when the stream works again.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout
        if isinstance(self._stream, io.TextIOWrapper):  # a terminal that cannot show all characters
            self._stream.reconfigure(errors="backslashreplace")
        self._lost = 0
        self._pumps: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._colours: dict[str, int] = {}
        self._coloured = self._stream.isatty() and "NO_COLOR" not in os.environ

    def say(self, text: str) -> None:
        """Print one or more lines of the hub itself."""
        for line in text.splitlines() or [""]:
            if not self.line(_HUB, line):
                _write(sys.stderr, f"{_HUB}: {line}\n")

    def show(self, text: str) -> None:
        """Print lines without a prefix, so that they can be copied."""
        self._write(f"{text}\n")

    def line(self, name: str, text: str) -> bool:
        """Print a line of a process; return whether the stream took it."""
        return self._write(f"{self._prefix(name)}{text}\n")

    def _write(self, text: str) -> bool:
        with self._lock:
            if self._lost and _write(
                self._stream, f"{self._prefix(_HUB)}{self._lost} lines before this one were lost\n"
            ):
                self._lost = 0
            taken = _write(self._stream, text)
            self._lost += not taken
            return taken

    def pump(self, name: str, source: IO[bytes]) -> threading.Thread:
        """Print the lines of `source` until it ends, in a thread of its own."""
        thread = threading.Thread(target=self._pump, args=(name, source), daemon=True)
        thread.start()
        self._pumps = [*(one for one in self._pumps if one.is_alive()), thread]
        return thread

    def drain(self) -> None:
        """Wait until the output of processes that have ended is printed."""
        until = time.monotonic() + DRAIN_S_MAX
        for thread in self._pumps:
            thread.join(max(until - time.monotonic(), 0.0))

    def _pump(self, name: str, source: IO[bytes]) -> None:
        # the pipe is unbuffered; a buffered reader returns lines of bounded length
        with open(source.fileno(), "rb", closefd=False) as lines:
            while raw := lines.readline(16_384):
                self.line(name, raw.decode("utf-8", "replace").rstrip("\r\n"))

    def _prefix(self, name: str) -> str:
        label = f"{name:<{NAME_WIDTH}} | "
        if not self._coloured:
            return label
        colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
        return f"\x1b[{colour}m{label}\x1b[0m"


def have_standard_streams() -> None:
    """Open standard streams that are closed: the next socket would get the descriptor, and every
    child would take it for a standard stream.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(fd)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - never closed
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123


def _write(stream: IO[str], text: str) -> bool:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):
        return False
    return True
