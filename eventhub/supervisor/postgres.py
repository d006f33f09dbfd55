"""The embedded PostgreSQL: where its programs are, how its data is made, and how it is started.
SQL module.

Only the binaries of the wheel are used. It listens on a unix socket in a private folder, never on a
port.
"""

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg

from eventhub.base import limits
from eventhub.base.guarded import Command
from eventhub.eventlog.retention.disk import wal_bytes
from eventhub.postgresql.rows import scalars
from eventhub.supervisor import leftovers, programs

USER = "eventhub"
DATABASE = "eventhub"
SOCKET = ".s.PGSQL.5432"
CONNECT_TIMEOUT_S = 2
WAL_BYTES_KEPT = 80 * 1024 * 1024  # PostgreSQL's own default of min_wal_size

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "wal_compression": "on",
    "checkpoint_timeout": "15min",
    "jit": "off",  # its compile time exceeds every query of the hub
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "[%p] ",
    "log_checkpoints": "off",
}


class Postgres(NamedTuple):
    """A server with its data in `folder` and its socket in `sockets`."""

    folder: Path
    sockets: Path

    def url(self, database: str = DATABASE) -> str:
        return f"postgresql://{USER}@/{database}?host={quote(str(self.sockets), safe='')}"

    @property
    def unfinished(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.new")

    def is_made(self) -> bool:
        return (self.folder / "PG_VERSION").exists()

    def initdb(self, env: Mapping[str, str], *, sync: bool = True) -> Command:
        """Make the data aside; `prepare` then renames it, so that an interrupted start leaves
        nothing half-made. Call `clear_unfinished` before every try."""
        argv = [
            str(programs.postgres("initdb")),
            f"--pgdata={self.unfinished}",
            f"--username={USER}",
            "--auth=trust",  # the socket's folder is private
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--no-instructions",
            *self._wal_files(),
            *([] if sync else ["--no-sync"]),
        ]
        return Command("initdb", tuple(argv), env)

    def clear_unfinished(self) -> None:
        if self.unfinished.is_dir() and not self.unfinished.is_symlink():
            shutil.rmtree(self.unfinished, ignore_errors=True)
        else:
            self.unfinished.unlink(missing_ok=True)

    def prepare(self) -> None:
        """Before every start of the server, with the data folder's lock held. Raises OSError."""
        if not self.is_made():
            self.unfinished.rename(self.folder)
        leftovers.clear(self.folder, self.sockets / SOCKET)

    def server(self, env: Mapping[str, str]) -> Command:
        """SIGINT is PostgreSQL's fast shutdown, also when its guardian is killed."""
        settings = {**SETTINGS, **self._wal(), "unix_socket_directories": str(self.sockets)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        argv = (str(programs.postgres("postgres")), "-D", str(self.folder), *options)
        return Command("postgres", argv, env, signal.SIGINT, signal.SIGINT, grace_s=6.0)

    def _wal(self) -> dict[str, str]:
        """How much of its log PostgreSQL keeps, by the size of the disk."""
        size = wal_bytes(_disk_bytes(self.folder.parent))
        least = min(size // 4, WAL_BYTES_KEPT)
        return {"max_wal_size": f"{size >> 20}MB", "min_wal_size": f"{least >> 20}MB"}

    def _wal_files(self) -> list[str]:
        """Small files on a small disk, where one of the usual size is a large part."""
        small = _disk_bytes(self.folder.parent) < limits.WAL_SMALL_DISK_BYTES
        return ["--wal-segsize=4"] if small else []

    def is_ready(self) -> bool:
        """Whether it answers; makes the hub's database when it is not there yet."""
        if not (self.sockets / SOCKET).exists():
            return False
        try:
            with psycopg.connect(
                self.url("postgres"), connect_timeout=CONNECT_TIMEOUT_S, autocommit=True
            ) as connection:
                ask = scalars(connection)
                if ask.execute("SELECT pg_is_in_recovery()").fetchone():
                    return False  # it answers reads while it replays archived WAL
                there = "SELECT true FROM pg_database WHERE datname = %s"
                if not ask.execute(there, [DATABASE]).fetchone():
                    connection.execute(f'CREATE DATABASE "{DATABASE}"')
        except psycopg.Error:
            return False
        return True


def _disk_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_frsize * found.f_blocks
