"""Show what the parts say, each line behind the name of its part; coloured on a terminal only."""

import os
import sys
import threading
from typing import IO

NAME_WIDTH = 9
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92)
_HUB = "hub"


class Output:
    """Lines from several threads to one stream, whole. A stream that is closed swallows them: parts
    never block on it."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lock = threading.Lock()
        self._colours: dict[str, int] = {}
        self._coloured = self._stream.isatty() and "NO_COLOR" not in os.environ

    def say(self, text: str) -> None:
        """A line, or several, of the hub itself."""
        for line in text.splitlines() or [""]:
            self.line(_HUB, line)

    def show(self, text: str) -> None:
        """Whole lines as they are, with nothing in front: what is there to be copied."""
        self._write(f"{text}\n")

    def line(self, name: str, text: str) -> None:
        self._write(f"{self._prefix(name)}{text}\n")

    def _write(self, text: str) -> None:
        with self._lock:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):
                return

    def pump(self, name: str, source: IO[bytes]) -> threading.Thread:
        """Show what `source` gives until it ends, in a thread of its own."""
        thread = threading.Thread(target=self._pump, args=(name, source), daemon=True)
        thread.start()
        return thread

    def _pump(self, name: str, source: IO[bytes]) -> None:
        # The pipe is unbuffered: a buffered reader gives lines of bounded length.
        with open(source.fileno(), "rb", closefd=False) as lines:
            while raw := lines.readline(16_384):
                self.line(name, raw.decode("utf-8", "replace").rstrip("\r\n"))

    def _prefix(self, name: str) -> str:
        label = f"{name:<{NAME_WIDTH}} | "
        if not self._coloured:
            return label
        colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
        return f"\x1b[{colour}m{label}\x1b[0m"
