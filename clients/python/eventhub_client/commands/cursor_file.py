"""The cursor of a command in a small file, from which the next run continues. Plain module."""

import time
from pathlib import Path

import orjson

from eventhub.base import limits
from eventhub_client.commands.exits import USAGE, Failed
from eventhub_client.types import Cursor


class CursorFile:
    """The cursor file: `load` at the start, `moved` after each event, `save` at the end. It is
    written at intervals: after a crash the events since then are delivered again. Without a path
    nothing is loaded or saved.
    """

    def __init__(self, path: Path | None, stream: str) -> None:
        self._path = path
        self._stream = stream
        self._cursor: Cursor | None = None
        self._saved_s = 0.0

    def load(self) -> Cursor | None:
        """Return the cursor, None without a file. Raises Failed for a file of another stream."""
        if self._path is None:
            return None
        try:
            found = orjson.loads(self._path.read_bytes())
            cursor = Cursor(found["segment"], found["sequence"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Failed(f"{self._path} is not a cursor file: {error!r}", USAGE) from error
        if found["stream"] != self._stream:
            raise Failed(
                f"{self._path} is of the stream {found['stream']}; use another file for"
                f" {self._stream}.",
                USAGE,
            )
        return cursor

    def moved(self, cursor: Cursor) -> None:
        """Note that the event at a cursor was handled."""
        self._cursor = cursor
        if time.monotonic() - self._saved_s >= limits.CURSOR_FILE_S:
            self.save()

    def save(self) -> None:
        """Write the file atomically."""
        if self._path is None or self._cursor is None:
            return
        content = {"stream": self._stream, **self._cursor._asdict()}
        part = self._path.with_name(self._path.name + ".new")
        part.write_bytes(orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE))
        part.replace(self._path)
        self._saved_s = time.monotonic()
