"""The hub under test: `manage.py up` with its own data, its processes by name, and its tables by
plain SQL.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psutil
import psycopg

from eventhub.supervisor.postgres import Postgres
from eventhub.supervisor.redis import Redis
from tests import forked, prepared
from tests.chaos.until import until
from tests.integration.up_process import HOME, Hub

WEB_PARTS = ("web-1", "web-2")
PART_PATIENCE_S = 60.0
START_PATIENCE_S = 120.0
READY = "EventHub is ready at"
SQL_TIMEOUT_S = 30.0


class Crew(NamedTuple):
    """The processes that `manage.py up` runs in addition to the servers. The log alone needs only
    the web processes.
    """

    web: int = len(WEB_PARTS)
    forwarders: int = 0
    workers: int = 0
    connectors: int = 0


LOG_CREW = Crew()


class HubUnderTest:
    """A `manage.py up`, started in the constructor. `given`: environment variables; with
    DATABASE_URL, REDIS_URL and EVENTHUB_SECRET_KEY it runs on the servers of others.
    """

    def __init__(
        self, data: Path, crew: Crew = LOG_CREW, port: int = 0, home: Path = HOME, **given: str
    ) -> None:
        self.data = data
        self._given = given
        if home == HOME and "DATABASE_URL" not in given and not (data / "postgres").exists():
            prepared.fill(data)
        counts = crew._asdict()
        if home != HOME:  # a former release has no connectors
            del counts["connectors"]
        words = [f for n, v in counts.items() for f in (f"--{n}", str(v))]
        self._hub = Hub(data, *words, port=port, home=home, script=home / "manage.py", **given)
        own = Postgres(data / "postgres", data / "run").url()
        self._database = given.get("DATABASE_URL", own)

    @property
    def url(self) -> str:
        return self._hub.url

    @property
    def database_url(self) -> str:
        return self._database

    @property
    def supervisor(self) -> int:
        return self._hub.process.pid

    @property
    def running(self) -> bool:
        return self._hub.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor."""
        self._hub.process.send_signal(number)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._hub.interrupt()

    def wait_end(self) -> int:
        """Return the exit status when all output was read."""
        return self._hub.wait_end()

    def leftovers(self) -> list[str]:
        """Return every process that belongs to the data folder."""
        return self._hub.leftovers()

    def kill_leftovers(self) -> None:
        """Kill the processes that have no guardian any more."""
        send_signal((int(line.partition(":")[0]) for line in self.leftovers()), signal.SIGKILL)

    def output(self) -> str:
        """Return everything that the hub has printed."""
        return self._hub.text

    def lines(self) -> list[str]:
        """Return the output line by line."""
        return self._hub.lines

    async def ready(self) -> None:
        """Wait until the hub is ready. Raise NeverCame; a busy machine may take long."""
        await until(lambda: READY in self.output(), f"{READY!r} in the output", START_PATIENCE_S)

    def stop(self) -> None:
        """Press Ctrl-C and wait for the end; keep the output next to the journal."""
        if self._hub.process.poll() is None:
            self._hub.interrupt()
            self._hub.wait_end()
        (self.data / "hub.log").write_text(self.output())

    def create_key(self, client: str) -> str:
        """Create a client with every grant by the hub's own command; return its key."""
        grants = [w for action in ("emit", "listen", "manage") for w in ("--grant", f"{action}:*")]
        done = self.manage("createkey", client, *grants)
        done.check_returncode()
        return done.stdout.split()[-1]

    def manage(self, *words: str, **given: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py WORDS` of this release to its end. `given`: environment variables."""
        return forked.manage({**self.env, **given}, *words)

    def celery(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `celery -A eventhub WORDS` of this release to its end."""
        return forked.run([sys.executable, "-m", "celery", "-A", "eventhub", *words], self.env)

    @property
    def env(self) -> dict[str, str]:
        """The environment that a command needs to work on this hub, as the banner prints it."""
        return {
            **os.environ,
            "DATABASE_URL": self._database,
            "DATABASE_DIRECT_URL": self._database,
            "REDIS_URL": Redis(self.data / "run").url(),
            "EVENTHUB_DATA": str(self.data),
            "EVENTHUB_ARCHIVE_URL": str(self.archive),
            "EVENTHUB_SECRET_KEY": self._secret_key,
            **self._given,
        }

    @property
    def _secret_key(self) -> str:
        given = self._given.get("EVENTHUB_SECRET_KEY")
        return given or (self.data / "secret_key").read_text().strip()

    @property
    def archive(self) -> Path:
        """The folder of archived segments."""
        return self.data / "archive"

    # --- processes ---

    def pid(self, part: str) -> int | None:
        """Return the process of a part; None while it is being started again."""
        with contextlib.suppress(AssertionError, IndexError, psutil.Error):
            return int(self._hub.part(part).pid)
        return None

    def pids(self, parts: Iterable[str]) -> list[int]:
        return [pid for part in parts if (pid := self.pid(part)) is not None]

    def guardians(self, parts: Iterable[str]) -> list[int]:
        """Return the guardians of those parts that have one now."""
        found = []
        for part in parts:
            with contextlib.suppress(AssertionError, psutil.Error):
                found.append(int(self._hub.guardian(part).pid))
        return found

    def backends(self) -> list[int]:
        """Return the children of the postmaster."""
        postmaster = self.pid("postgres")
        if postmaster is None:
            return []
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(postmaster).children()]
        return []

    def readiness(self, part: str) -> int:
        """Return how often the supervisor has reported a part as ready."""
        return self.output().count(f"{part} is ready")

    async def part_ready(self, part: str, times: int) -> None:
        await until(lambda: self.readiness(part) >= times, f"{part} to be ready", PART_PATIENCE_S)

    # --- tables ---

    async def connect(self) -> psycopg.AsyncConnection[Any]:
        """Open a connection for the judge, in autocommit mode."""
        return await psycopg.AsyncConnection.connect(
            self._database, autocommit=True, connect_timeout=5, application_name="chaos"
        )

    def connect_plainly(self) -> psycopg.Connection[Any]:
        """Open a blocking connection, for a thread: large reads must not block the event loop."""
        return psycopg.connect(
            self._database, autocommit=True, connect_timeout=5, application_name="chaos"
        )

    async def rows(self, sql: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        async with asyncio.timeout(SQL_TIMEOUT_S), await self.connect() as connection:
            return await (await connection.execute(sql, values)).fetchall()


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
