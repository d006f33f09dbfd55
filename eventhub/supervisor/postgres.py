"""The embedded PostgreSQL: how its cluster is created and started. SQL module.

Only the binaries of the wheel are used. It listens on a unix socket in a private folder, never on a
port.
"""

import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg

from eventhub.base import limits
from eventhub.base.guarded_process import Command
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
    """A PostgreSQL server with its data in `folder` and its socket in `sockets`."""

    folder: Path
    sockets: Path

    def url(self, database: str = DATABASE) -> str:
        return f"postgresql://{USER}@/{database}?host={quote(str(self.sockets), safe='')}"

    @property
    def unfinished(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.new")

    def exists(self) -> bool:
        return (self.folder / "PG_VERSION").exists()

    def initdb(self, env: Mapping[str, str], *, sync: bool = True) -> Command:
        """Return the command that creates the cluster under another name; `prepare` then renames
        it, so that an interrupted start leaves no partial cluster. Call `clear_unfinished` before
        every attempt.
        """
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
        """Prepare a start of the server, with the data folder's lock held. Raises OSError."""
        if not self.exists():
            self.unfinished.rename(self.folder)
        leftovers.clear(self.folder, self.sockets / SOCKET)

    def server(self, env: Mapping[str, str]) -> Command:
        """Return the server's command. SIGINT is PostgreSQL's fast shutdown, also when its guardian
        is killed.
        """
        settings = {**SETTINGS, **self._wal(), "unix_socket_directories": str(self.sockets)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        argv = (str(programs.postgres("postgres")), "-D", str(self.folder), *options)
        return Command("postgres", argv, env, signal.SIGINT, signal.SIGINT, grace_s=6.0)

    def _wal(self) -> dict[str, str]:
        """Return the settings for the size of the WAL, by the size of the disk."""
        size = wal_bytes(shutil.disk_usage(self.folder.parent).total)
        least = min(size // 4, WAL_BYTES_KEPT)
        return {"max_wal_size": f"{size >> 20}MB", "min_wal_size": f"{least >> 20}MB"}

    def _wal_files(self) -> list[str]:
        """Return the option for small WAL files on a small disk, where a default one is large."""
        small = shutil.disk_usage(self.folder.parent).total < limits.WAL_SMALL_DISK_BYTES
        return ["--wal-segsize=4"] if small else []

    def is_ready(self) -> bool:
        """Return whether the server answers; create the hub's database if it is missing."""
        if not (self.sockets / SOCKET).exists():
            return False
        try:
            with psycopg.connect(
                self.url("postgres"), connect_timeout=CONNECT_TIMEOUT_S, autocommit=True
            ) as connection:
                cursor = scalars(connection)
                if cursor.execute("SELECT pg_is_in_recovery()").fetchone():
                    return False  # it answers reads while it replays archived WAL
                exists = "SELECT true FROM pg_database WHERE datname = %s"
                if not cursor.execute(exists, [DATABASE]).fetchone():
                    connection.execute(f'CREATE DATABASE "{DATABASE}"')
        except psycopg.Error:
            return False
        return True
