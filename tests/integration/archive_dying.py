"""An archiver that kills itself at a moment: `python -m tests.integration.archive_dying URL PLACE
MOMENT`. With MOMENT `list` it archives and prints the moments there were.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import psycopg

from eventhub.clock import SystemClock
from eventhub.eventlog.archive.ledger import Choice
from eventhub.eventlog.archive.place import Place
from eventhub.eventlog.archive.rows import Rows
from eventhub.eventlog.archive.run import Archiver


class DyingPlace(Place):
    """A place that counts what is done with it, and dies at a moment."""

    def __init__(self, url: str, at: str) -> None:
        super().__init__(url)
        self._dies_at = at
        self._count = 0

    def moment(self, what: str) -> None:
        self._count += 1
        name = f"{self._count} {what}"
        if self._dies_at == "list":
            print(name, flush=True)
        elif self._dies_at == name:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def create(self, name: str) -> Iterator[tuple[str, IO[bytes]]]:
        self.moment("create")
        with super().create(name) as (path, file):
            write = file.write

            def dying(data: Any) -> int:
                self.moment("write")
                return write(data)

            file.write = dying  # type: ignore[method-assign]
            yield path, file
        self.moment("closed")

    def publish(self, temporary: str, path: str) -> None:
        self.moment("rename")
        super().publish(temporary, path)
        self.moment("renamed")


def main(url: str, place: str, at: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, Rows(url) as rows:
        archiver = Archiver(DyingPlace(place, at), connection, rows, SystemClock())
        for done in archiver.run(Choice()):
            assert not done.reason, done


if __name__ == "__main__":
    main(*sys.argv[1:])
