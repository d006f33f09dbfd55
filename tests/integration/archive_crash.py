"""Archivers that kill themselves at a chosen moment: `python -m tests.integration.archive_crash
URL`.

Each line `FOLDER/MOMENT` of its input starts a new process; with the moment `list` it archives and
prints the moments. Then the exit status is printed, as of subprocess.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import adbc_driver_postgresql.dbapi  # noqa: F401 - it takes half a second, once
import psycopg

from eventhub.base.clock import SystemClock
from eventhub.eventlog.archive.archiver import Archiver
from eventhub.eventlog.archive.catalog import SegmentFilter
from eventhub.eventlog.archive.database_segment import DatabaseSegmentReader
from eventhub.eventlog.archive.folder import ArchiveFolder


class CrashingFolder(ArchiveFolder):
    """A folder that numbers the operations on it, and kills its process at one of them."""

    def __init__(self, url: str, at: str) -> None:
        super().__init__(url)
        self._crashes_at = at
        self._count = 0

    def moment(self, what: str) -> None:
        self._count += 1
        name = f"{self._count} {what}"
        if self._crashes_at == "list":
            print(name, flush=True)
        elif self._crashes_at == name:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def create(self, name: str) -> Iterator[tuple[str, IO[bytes]]]:
        self.moment("create")
        with super().create(name) as (path, file):
            write = file.write

            def crashing(data: Any) -> int:
                self.moment("write")
                return write(data)

            file.write = crashing  # type: ignore[method-assign]
            yield path, file
        self.moment("closed")

    def publish(self, temporary: str, path: str) -> None:
        self.moment("rename")
        super().publish(temporary, path)
        self.moment("renamed")


def serve(work: Callable[[str, str], None]) -> None:
    """Run `work`, which gets the folder and the moment, in a new process per line. Imports are done
    once.
    """
    for line in sys.stdin:
        folder, _, at = line.rstrip("\n").rpartition("/")
        child = os.fork()
        if not child:
            try:
                work(folder, at)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def archive(folder: str, at: str) -> None:
    url = sys.argv[1]
    with psycopg.connect(url, autocommit=True) as connection, DatabaseSegmentReader(url) as rows:
        archiver = Archiver(CrashingFolder(folder, at), connection, rows, SystemClock())
        for done in archiver.run(SegmentFilter()):
            assert not done.reason, done


if __name__ == "__main__":
    serve(archive)
