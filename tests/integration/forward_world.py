"""A migrated database with streams, endpoints and registrations, and real forwarders, for tests of
forwarding.

Registrations are written here as the product changes them: the head of `system`, the heads of the
streams, the barrier, and the event last.
"""

import asyncio
import itertools
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson
import psycopg

from delivery.forward.stream_matchers import StreamMatchers
from delivery.forward.zone import ZoneCaches
from eventhub.access.client_groups import Groups
from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from eventhub.base.guardian import descendants
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog import streams
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.log import Log
from eventhub.eventlog.streams import StreamPolicy
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.types.registry import TypeRegistry
from registrations.feed import Feed
from tests.databases import migrated_database
from tests.forked import HOME, counting, fork_server

POLL_S = 0.02
TIMEOUT_S = 60.0
_names = (f"stream-{number}" for number in itertools.count(1))
Row = tuple[Any, ...]


class World:
    """One database. `zone` and `client` are ready to use."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._own = threading.local()
        self._open: list[psycopg.Connection[Any]] = []
        [[self.zone]] = self.sql("INSERT INTO zones (name) VALUES ('forward') RETURNING id")
        [[self.client]] = self.sql(
            "INSERT INTO clients (zone_id, name, created_at) VALUES (%s, 'c', now()) RETURNING id",
            self.zone,
        )

    def sql(self, query: str, *args: Any) -> list[Row]:
        """Return the rows of a statement, committed."""
        cursor = self._connection().execute(query.encode(), args)
        return cursor.fetchall() if cursor.description else []

    def stream(self, **policy: Any) -> int:
        with self._transaction() as connection:
            made = streams.create_stream(
                connection, self.zone, next(_names), StreamPolicy(**policy)
            )
            assert made is not None
            return made.id

    def endpoints(self, count: int = 1, *, ordered: bool = False) -> list[int]:
        rows = self.sql(
            "INSERT INTO endpoints (zone_id, client_id, url, secret, ordered)"
            " SELECT %s, %s, 'https://example.org/' || n, '', %s FROM generate_series(1, %s) AS n"
            " RETURNING id",
            *(self.zone, self.client, ordered, count),
        )
        return [row[0] for row in rows]

    def emit(self, stream_id: int, *types: str, **fields: Any) -> list[Appended]:
        """Append one event of each type."""
        drafts = [
            Draft(stream_id, DEFAULT_MASK, encode(Event("d", type, {"n": at}, **fields)))
            for at, type in enumerate(types)
        ]
        with self._transaction() as connection:
            return append_in(connection, drafts)

    def group(self) -> int:
        [[made]] = self.sql(
            "INSERT INTO registration_groups (zone_id, client_id, name)"
            " VALUES (%s, %s, gen_random_uuid()::text) RETURNING id",
            *(self.zone, self.client),
        )
        return int(made)

    def suspend(self, group: int, on: list[int], *, resume: bool = False) -> None:
        """Suspend or resume a group whose registrations are, or were, on some streams."""
        with self._transaction() as connection:
            barrier = self._barrier(connection, on)
            connection.execute(
                "UPDATE suspensions SET until_barrier = %s WHERE group_id = %s"
                if resume
                else "INSERT INTO suspensions (from_barrier, group_id) VALUES (%s, %s)",
                (barrier, group),
            )
            self._tell(connection, "registration_group.changed", {"group": group}, barrier)

    def register(
        self,
        on: int | list[int],
        endpoints: list[int],
        type: str | None = None,
        group: int | None = None,
    ) -> list[int]:
        """Create a registration for each endpoint, in one change; return their ids."""
        ids = [on] if isinstance(on, int) else on
        filter = orjson.dumps({"type": type} if type else {}).decode()
        with self._transaction() as connection:
            barrier = self._barrier(connection, ids)
            made = connection.execute(
                "WITH made AS (INSERT INTO registrations (zone_id, client_id)"
                " SELECT %s, %s FROM unnest(%s::bigint[]) RETURNING id),"
                " paired AS (SELECT m.id, e.endpoint FROM"
                "  (SELECT id, row_number() OVER (ORDER BY id) AS n FROM made) AS m"
                "  JOIN unnest(%s::bigint[]) WITH ORDINALITY AS e (endpoint, n) USING (n))"
                " INSERT INTO registration_versions (registration_id, number, streams, language,"
                "  filter, endpoint_id, from_barrier, group_id)"
                " SELECT id, 1, %s::bigint[], 'pairs', %s, endpoint, %s, %s FROM paired"
                " RETURNING registration_id",
                (self.zone, self.client, endpoints, endpoints, ids, filter, barrier,
                 group),
            )  # fmt: skip
            registrations = sorted(row[0] for row in made.fetchall())
            self._announce(connection, "registration.created", registrations[:1], barrier)
            return registrations

    def begin(self) -> "LateChange":
        """Begin a change, without doing more."""
        return LateChange(self)

    def change(self, registration: int, on: int, type: str | None) -> None:
        """Write a new version with another type; None ends the registration."""
        with self._transaction() as connection:
            barrier = self._barrier(connection, [on])
            [[endpoint, number]] = connection.execute(
                "UPDATE registration_versions SET until_barrier = %s"
                " WHERE registration_id = %s AND until_barrier IS NULL"
                " RETURNING endpoint_id, number",
                (barrier, registration),
            ).fetchall()
            if type is not None:
                connection.execute(
                    "INSERT INTO registration_versions (registration_id, number, streams,"
                    " language, filter, endpoint_id, from_barrier)"
                    " VALUES (%s, %s, %s::bigint[], 'pairs', %s, %s, %s)",
                    (registration, number + 1, [on], f'{{"type": "{type}"}}', endpoint, barrier),
                )
            name = "registration.deleted" if type is None else "registration.changed"
            self._announce(connection, name, [registration], barrier)

    def deliveries(self, stream_id: int) -> list[Row]:
        """Return (sequence, endpoint, registrations) of a stream's deliveries, in order."""
        return self.sql(
            "SELECT sequence, endpoint_id, registrations FROM deliveries WHERE stream_id = %s"
            " ORDER BY sequence, endpoint_id",
            stream_id,
        )

    def passed(self, stream_id: int) -> int:
        """Return the stream's checkpoint; -1 while it has none."""
        rows = self.sql("SELECT sequence FROM forwarding WHERE stream_id = %s", stream_id)
        return int(rows[0][0]) if rows else -1

    def close(self) -> None:
        for connection in self._open:
            connection.close()

    def _connection(self) -> psycopg.Connection[Any]:
        """Return the calling thread's connection: opening one costs more than most statements."""
        if not hasattr(self._own, "connection"):
            self._own.connection = psycopg.connect(self.url, autocommit=True)
            self._open.append(self._own.connection)
        made: psycopg.Connection[Any] = self._own.connection
        return made

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        connection = self._connection()
        with connection.transaction():
            yield connection

    def _barrier(self, connection: psycopg.Connection[Any], ids: list[int]) -> int:
        streams.lock_system(connection)
        rows = connection.execute(
            "SELECT stream_id, segment, sequence FROM heads WHERE stream_id = ANY(%s)"
            " ORDER BY stream_id FOR SHARE",
            (ids,),
        ).fetchall()
        found = connection.execute(
            "INSERT INTO barriers (streams, segments, sequences)"
            " VALUES (%s::bigint[], %s::uuid[], %s::bigint[]) RETURNING id",
            tuple([row[at] for row in rows] for at in range(3)),
        ).fetchone()
        assert found is not None
        return int(found[0])

    def _announce(
        self, connection: psycopg.Connection[Any], type: str, registrations: list[int], barrier: int
    ) -> None:
        for registration in registrations:
            self._tell(connection, type, {"registration": registration}, barrier)

    def _tell(
        self, connection: psycopg.Connection[Any], type: str, what: dict[str, int], barrier: int
    ) -> None:
        announcement = Event("eventhub", type, {**what, "barrier": barrier})
        append_in(connection, [Draft(SYSTEM_STREAM_ID, DEFAULT_MASK, encode(announcement))])


class LateChange:
    """A registration whose transaction has its number, and is committed much later."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._connection = psycopg.connect(world.url)
        made = "INSERT INTO barriers (streams, segments, sequences) VALUES ('{}', '{}', '{}')"
        row = self._connection.execute(f"{made} RETURNING id").fetchone()
        assert row is not None
        self._barrier = int(row[0])

    def register(self, on: int, endpoint: int) -> int:
        """Create and commit it now; return its id."""
        world, connection = self._world, self._connection
        streams.lock_system(connection)
        connection.execute(
            "UPDATE barriers b SET streams = ARRAY[h.stream_id], segments = ARRAY[h.segment],"
            " sequences = ARRAY[h.sequence] FROM heads h WHERE h.stream_id = %s AND b.id = %s",
            (on, self._barrier),
        )
        row = connection.execute(
            "WITH made AS (INSERT INTO registrations (zone_id, client_id)"
            "  VALUES (%s, %s) RETURNING id)"
            " INSERT INTO registration_versions (registration_id, number, streams, language,"
            "  filter, endpoint_id, from_barrier)"
            " SELECT id, 1, ARRAY[%s]::bigint[], 'pairs', '{}', %s, %s FROM made"
            " RETURNING registration_id",
            (world.zone, world.client, on, endpoint, self._barrier),
        ).fetchone()
        assert row is not None
        world._announce(connection, "registration.created", [row[0]], self._barrier)
        connection.commit()
        connection.close()
        return int(row[0])


class ForwardProcess:
    """One `manage.py forward`; its data folder is that of its log."""

    def __init__(self, world: World, log: Path) -> None:
        self.world = world
        self._log = log
        env = {
            **os.environ,
            "DATABASE_URL": world.url,
            "DATABASE_DIRECT_URL": world.url,
            "EVENTHUB_DATA": str(log.parent),
        }
        argv = (sys.executable, str(HOME / "manage.py"), "forward")
        with log.open("ab") as output:
            command = Command("forward", argv, counting(env), grace_s=5.0)
            self._run = GuardedProcess(
                command, current_identity(), output=output, server=fork_server()
            )

    @property
    def pid(self) -> int:
        return descendants(self._run.pid)[0]

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_ready(self) -> "ForwardProcess":
        eventually(lambda: "forwarder_ready" in self.log(), "forwarder_ready")
        return self

    def stop(self) -> None:
        self._run.end()

    def kill(self) -> None:
        self._run.kill()
        self._run.wait(TIMEOUT_S)


def eventually(true: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Wait until the condition is true."""
    until = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until, f"not within {timeout_s} s: {what}"
        time.sleep(POLL_S)


def world_database() -> Iterator[World]:
    """Yield a migrated database, as a fixture."""
    with migrated_database("forward") as url, closing(World(url)) as world:
        yield world


Start = Callable[[], ForwardProcess]


def forwarders(world: World, tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts forwarders, as a fixture; stop those still running at
    the end.
    """
    started: list[ForwardProcess] = []

    def one_more() -> ForwardProcess:
        process = ForwardProcess(world, tmp_path / f"forward-{len(started)}.log").wait_ready()
        started.append(process)
        return process

    yield one_more
    for process in started:
        process.stop()


async def interests_alone(world: World, tmp_path: Path) -> AsyncIterator[StreamMatchers]:
    """Yield interests, as a fixture, without background tasks for changes and indexes: their
    content came through `current`.
    """
    async with Log.open(database_url=world.url) as log:
        feed = Feed(log)
        task = asyncio.create_task(feed.run())
        await feed.confirm()
        yield StreamMatchers(
            log, feed, ZoneCaches(TypeRegistry(log), Groups(log)), tmp_path, lambda: None
        )
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def place(world: World, stream_id: int, sequence: int) -> None:
    """Set the stream's checkpoint, as its forwarder writes it."""
    world.sql(
        "INSERT INTO forwarding (stream_id, segment, sequence)"
        " SELECT stream_id, segment, %s FROM heads WHERE stream_id = %s"
        " ON CONFLICT (stream_id) DO UPDATE SET sequence = excluded.sequence",
        *(sequence, stream_id),
    )
