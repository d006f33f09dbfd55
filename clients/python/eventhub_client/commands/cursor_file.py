"""Where a command stood: a small file by which it goes on. Plain module."""

import time
from pathlib import Path

import orjson

from eventhub.base import limits
from eventhub_client.commands.exits import USAGE, Failed
from eventhub_client.types import Cursor


class CursorFile:
    """`load` at the start, `moved` after each event, `save` at the end. It is written at most every
    so often: after a crash the events since then come once more.
    """

    def __init__(self, path: Path, stream: str) -> None:
        self._path = path
        self._stream = stream
        self._cursor: Cursor | None = None
        self._saved_s = 0.0

    def load(self) -> Cursor | None:
        """None if there is no file yet. Raises Failed for one of another stream."""
        try:
            found = orjson.loads(self._path.read_bytes())
            cursor = Cursor(found["segment"], found["sequence"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Failed(f"{self._path} is no cursor file: {error!r}", USAGE) from error
        if found["stream"] != self._stream:
            raise Failed(
                f"{self._path} is of the stream {found['stream']}; give {self._stream} a file of"
                " its own.",
                USAGE,
            )
        return cursor

    def moved(self, cursor: Cursor) -> None:
        self._cursor = cursor
        if time.monotonic() - self._saved_s >= limits.CURSOR_FILE_S:
            self.save()

    def save(self) -> None:
        """Whole or not at all."""
        if self._cursor is None:
            return
        beside = self._path.with_name(self._path.name + ".new")
        beside.write_bytes(orjson.dumps({"stream": self._stream, **self._cursor._asdict()}))
        beside.replace(self._path)
        self._saved_s = time.monotonic()
