"""A hub on a PostgreSQL server of its own, whose folder is copied and restored."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from eventhub.base.guarded_process import GuardedProcess
from eventhub.supervisor import programs
from eventhub.supervisor.hub import LockedFolder, Servers
from eventhub.supervisor.postgres import Postgres
from tests.integration.up_process import wait_until
from tests.live import Answer, LiveHub, LiveZone, make_operator
from tests.live_processes import Processes

EVENT = {"domain": "shop", "type": "order.placed"}
Cursor = tuple[str, int]


class Store:
    """The server, run as by `manage.py up`. `marks` is outside of its folder, as in a hub."""

    def __init__(self, root: Path) -> None:
        self.place = LockedFolder.take(root / "data")
        self.folder = self.place.folder.postgres
        self.marks = root / "marks"
        self.marks.mkdir()
        self._postgres = Postgres(self.folder, self.place.sockets)
        self._servers = Servers(self._postgres, None)
        self._log = root / "postgres.log"
        self._run: GuardedProcess | None = None
        self.env = self._environment()
        self.url = self._postgres.url()
        initdb = GuardedProcess(self._postgres.initdb(self.env), self.place.identity)
        assert initdb.wait(60) == 0

    def _environment(self) -> dict[str, str]:
        return {
            **self.place.environment(self._servers),
            "EVENTHUB_MARK_URL": f"file://{self.marks}",
        }

    def start(self) -> None:
        self._environment()  # what was put back belongs to the server again
        self._postgres.prepare()
        with self._log.open("ab") as log:
            command = self._postgres.server(self.env)
            self._run = GuardedProcess(command, self.place.identity, output=log)
        wait_until(self._postgres.is_ready, "the server")

    def stop(self) -> None:
        """Shut the server down."""
        assert self._run is not None
        assert self._run.end() == 0

    def crash(self) -> None:
        """Kill the server and all processes below it."""
        assert self._run is not None
        self._run.kill()
        self._run.wait(30)

    def copy(self, to: Path) -> Path:
        """Copy the folder as it is, like a snapshot of its volume; return the copy."""
        return Path(shutil.copytree(self.folder, to, symlinks=True))

    def restore(self, copy: Path) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(copy, self.folder, symlinks=True)

    def program(self, name: str, *words: str) -> None:
        """Run one of PostgreSQL's programs on the server."""
        where = ("-h", str(self.place.sockets), "-U", "eventhub")
        subprocess.run([str(programs.postgres(name)), *where, *words], check=True)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def leave(self) -> None:
        if self._run is not None and self._run.poll() is None:
            self._run.end()
        self.place.leave()


class World:
    """A hub with one web process, and its PostgreSQL server."""

    def __init__(self, hub: LiveHub, store: Store, zone: LiveZone, root: Path) -> None:
        self.hub = hub
        self.store = store
        self.root = root
        self._zone = zone

    def new_stream(self, name: str) -> str:
        return self._zone.create_stream(name)

    def emit(self, stream: str, count: int) -> Cursor:
        """Emit events as soon as the hub accepts them; return the cursor of the last one."""
        answers: list[Answer] = []

        def taken() -> bool:
            answers.append(self._zone.emit(stream, [EVENT] * count))
            assert answers[-1].status in (200, 503), answers[-1]
            return answers[-1].status == 200

        wait_until(taken, "the hub to take events")
        return self.head(stream)

    def head(self, stream: str) -> Cursor:
        found = self._ask(f"/v1/streams/{stream}").json
        return found["segment"]["uuid"], found["last"]

    def read(self, stream: str, cursor: Cursor) -> Answer:
        """Read the history after a cursor."""
        return self._ask(f"/v1/streams/{stream}/events?from={cursor[0]}:{cursor[1]}")

    def recovered(self) -> list[str]:
        """Return the reasons of all `log.recovered` in `system`."""
        events = self._ask("/v1/streams/system/events?from=oldest&type=log.recovered").json[
            "events"
        ]
        return [one["event"]["attributes"]["reason"] for one in events]

    def wait_marked(self, cursor: Cursor) -> None:
        """Wait until the mark has the event; it follows the commits within a second."""
        wait_until(lambda: f'"{cursor[0]}", "sequence": {cursor[1]},' in self._mark(), "the mark")

    def _mark(self) -> str:
        return "".join(path.read_text() for path in self.store.marks.glob("*eventhub"))

    def _ask(self, path: str) -> Answer:
        answers: list[Answer] = []

        def answered() -> bool:
            answers.append(self.hub.call("GET", path, key=self._zone.admin))
            return answers[-1].status != 503

        wait_until(answered, path)
        return answers[-1]


@contextmanager
def world(root: Path) -> Iterator[World]:
    """Start a hub whose log has nothing but its own start."""
    saved = {name: os.environ.pop(name, "") for name in ("DATABASE_URL", "DATABASE_DIRECT_URL")}
    store = Store(root)
    password = secrets.token_urlsafe(12)
    env = {**store.env, "EVENTHUB_LOG_LEVEL": "info", "DJANGO_SUPERUSER_PASSWORD": password}
    processes = Processes.of(env, root, count=1)
    try:
        store.start()
        hub = LiveHub(env, processes)
        hub.manage("boot", "--migrate", "-v", "0")
        make_operator(env)
        hub.web[0].start()
        yield World(hub, store, hub.new_zone(), root)
    finally:
        processes.stop()
        store.leave()
        os.environ.update({name: value for name, value in saved.items() if value})
