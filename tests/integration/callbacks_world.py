"""A database with streams, endpoints and deliveries, and receivers on loopback, for tests of the
drain.

Deliveries are inserted as a forwarder writes them, so these tests need no forwarder.
"""

import asyncio
import itertools
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import date
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from delivery.callbacks.claimed_groups import claim_groups
from delivery.callbacks.claims import Claimed
from delivery.callbacks.dispatcher import CallbackDispatcher, DispatcherSettings
from delivery.partitions.create import day_partition, deliveries_partition
from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog import streams
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.streams import StreamPolicy
from eventhub.monitoring.heartbeat import HubMember
from eventhub.postgresql.connections import Connection
from registrations.endpoints.addresses import parse_allowed
from registrations.endpoints.credentials import packed
from registrations.endpoints.secrets import Keyring
from registrations.endpoints.statements import disable
from tests.databases import migrated_database

SECRET_KEY = "key-of-the-tests" * 2
KEYRING = Keyring((SECRET_KEY,))
SECRET = bytes(range(32))
LOOPBACK = ("127.0.0.0/8",)
QUICKLY = (1,) * len(limits.CALLBACK_RETRY_SCHEDULE_S)  # pauses of a second before retries
_names = itertools.count(1)


class Sent(NamedTuple):
    """Events of one stream as they are stored."""

    stream_id: int
    name: str
    partition_id: int
    segment_id: int
    segment: str
    sequences: list[int]


class CallbacksWorld:
    """The database; every call is a transaction of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, autocommit=True)
        self.client_id: int = self.one(
            "INSERT INTO clients (zone_id, name, created_at)"
            " SELECT id, 'shop', now() FROM zones WHERE name = 'default' RETURNING id"
        )
        self._partitions: set[str] = set()
        self.partition(
            day_partition("attempts", date.fromisoformat(str(self.one("SELECT current_date"))))
        )

    def sql(self, query: str, *args: Any) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(query.encode(), args)
        return cursor.fetchall() if cursor.description else []

    def one(self, query: str, *args: Any) -> Any:
        return self.sql(query, *args)[0][0]

    def partition(self, partition: Any) -> None:
        if partition.name in self._partitions:
            return
        statement = sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES {}").format(
            sql.Identifier(partition.name), sql.Identifier(partition.parent), partition.bound
        )
        self.connection.execute(statement)
        self._partitions.add(partition.name)

    def events(self, count: int, *, stream_id: int = 0, **fields: Any) -> Sent:
        """Append events, to a new stream if none is given."""
        if not stream_id:
            with self.connection.transaction():
                zone_id = self.one("SELECT id FROM zones WHERE name = 'default'")
                name = f"orders-{next(_names)}"
                made = streams.create_stream(self.connection, zone_id, name, StreamPolicy())
                assert made is not None
                stream_id = made.id
        with self.connection.transaction():
            drafts = [Draft(stream_id, 1, encode(Event("shop", "order.placed", {"n": n}, **fields)))
                      for n in range(count)]  # fmt: skip
            appended = append_in(self.connection, drafts)
        name, group, segment_id, segment = self.sql(
            "SELECT s.name, h.partition_id, h.segment_id, h.segment::text"
            "  FROM heads h JOIN streams s ON s.id = h.stream_id WHERE s.id = %s",
            stream_id,
        )[0]
        sequences = [each.sequence for each in appended]
        return Sent(stream_id, name, group, segment_id, segment, sequences)

    def endpoint(
        self, url: str, *, ordered: bool = False, format: str = "native", **fields: Any
    ) -> int:
        """Create an endpoint; `fields` are further columns, such as `batch_events_max`."""
        fields.setdefault("retry_schedule", QUICKLY)
        if fields["retry_schedule"] is not None:
            fields["retry_schedule"] = list(fields["retry_schedule"])
        names = "".join(f", {name}" for name in fields)
        marks = ", %s" * len(fields)
        found: int = self.one(
            f"INSERT INTO endpoints (zone_id, client_id, url, secret, ordered, format{names})"
            f" SELECT zone_id, id, %s, %s, %s, %s{marks} FROM clients WHERE id = %s RETURNING id",
            url,
            KEYRING.seal(SECRET),
            ordered,
            format,
            *fields.values(),
            self.client_id,
        )
        return found

    def credentials(self, endpoint_id: int, kind: str, value: dict[str, Any] | None) -> None:
        """Set the headers, the authentication or the certificates of an endpoint."""
        self.sql(
            "DELETE FROM endpoint_secrets WHERE endpoint_id = %s AND kind = %s", endpoint_id, kind
        )
        if value is not None:
            self.sql(
                "INSERT INTO endpoint_secrets (endpoint_id, kind, sealed) VALUES (%s, %s, %s)",
                endpoint_id,
                kind,
                KEYRING.seal(packed(value)),
            )
        self.sql("UPDATE endpoints SET changed_at = clock_timestamp() WHERE id = %s", endpoint_id)

    def deliver(
        self,
        sent: Sent,
        endpoint_id: int,
        *,
        registrations: Sequence[int] = (7,),
        lanes: Sequence[int | None] = (),
        notice: str = "",
    ) -> None:
        """Insert deliveries of these events to the endpoint, and notify the workers. `lanes`: if it
        is ordered by key; `notice`: the number that chooses a worker.
        """
        self.partition(deliveries_partition(sent.partition_id))
        self.sql(
            "WITH written AS ("
            " INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
            " ordered, registrations, lane)"
            " SELECT %s, e.id, %s, n, %s, e.ordered, %s, lane"
            " FROM endpoints e, unnest(%s::bigint[], %s::bigint[]) AS u (n, lane) WHERE e.id = %s"
            " RETURNING endpoint_id, stream_id, lane, ordered)"
            " INSERT INTO lanes AS l (endpoint_id, stream_id, expires_at, due_at)"
            " SELECT DISTINCT endpoint_id, COALESCE(lane, stream_id), 'epoch'::timestamptz, now()"
            " FROM written WHERE ordered ORDER BY 1, 2"
            " ON CONFLICT (endpoint_id, stream_id)"
            " DO UPDATE SET touched = true, due_at = COALESCE(l.due_at, now())",
            sent.partition_id,
            sent.segment_id,
            sent.stream_id,
            list(registrations),
            sent.sequences,
            list(lanes),
            endpoint_id,
        )
        self.sql("SELECT pg_notify('eventhub_deliveries', %s)", notice)

    def states(self, endpoint_id: int) -> list[str]:
        rows = self.sql(
            "SELECT state FROM deliveries WHERE endpoint_id = %s ORDER BY sequence", endpoint_id
        )
        return [row[0] for row in rows]

    def enabled(self, endpoint_id: int) -> tuple[bool, str | None]:
        """Return whether the endpoint is enabled, and the reason if not."""
        [found] = self.sql("SELECT enabled, reason FROM endpoints WHERE id = %s", endpoint_id)
        return found[0], found[1]

    def fan_out(self, sent: Sent, sequence: int) -> None:
        """Insert a fan-out: an event whose deliveries are still to be written."""
        values = {
            "partition_id": sent.partition_id,
            "stream_id": sent.stream_id,
            "segment_id": sent.segment_id,
            "sequence": sequence,
            "endpoints": [1],
            "registrations": [7],
            "ends": [1],
            "total": 1,
        }
        marks = ", ".join(["%s"] * len(values))
        self.sql(f"INSERT INTO fanouts ({', '.join(values)}) VALUES ({marks})", *values.values())

    def count(self, state: str) -> int:
        found: int = self.one("SELECT count(*) FROM deliveries WHERE state = %s", state)
        return found

    def outcomes(self, endpoint_id: int) -> list[tuple[int, str, int | None]]:
        """Return (number, outcome, status) of all attempts."""
        return self.sql(
            "SELECT number, outcome, status FROM attempts WHERE endpoint_id = %s"
            " ORDER BY sequence, number",
            endpoint_id,
        )

    def open_circuit(self, endpoint_id: int, *, pause_s: float = 60, until: str = "now()") -> None:
        """Insert an open circuit of the endpoint; its pause ends at the SQL expression `until`."""
        self.sql(
            "INSERT INTO circuits (endpoint_id, state, failures, failing_since, failed_at,"
            " opened_at, pause_s, retry_at, outcome, segment_id, sequence)"
            f" VALUES (%s, 'open', 9, now(), now(), now(), %s, {until}, 'status', 1, 1)",
            endpoint_id,
            pause_s,
        )

    def pass_time(self, hours: float) -> None:
        """Let time pass for everything that the database has a time of."""
        shift = f"- interval '{hours} hours'"
        self.sql(f"UPDATE deliveries SET created_at = created_at {shift},"
                 f" next_attempt_at = next_attempt_at {shift}"
                 " WHERE state = 'pending' AND claim IS NULL")  # fmt: skip
        self.sql(f"UPDATE circuits SET failing_since = failing_since {shift},"
                 f" failed_at = failed_at {shift}, opened_at = opened_at {shift},"
                 f" retry_at = retry_at {shift}, recorded_at = recorded_at {shift}")  # fmt: skip
        self.sql(f"UPDATE endpoints SET changed_at = changed_at {shift}")
        self.sql(f"UPDATE lanes SET due_at = due_at {shift} WHERE expires_at <= now()")

    def settle(self, endpoint_id: int, count: int) -> None:
        """Wait until this many deliveries of the endpoint have ended."""
        self.until(lambda: len([s for s in self.states(endpoint_id) if s != "pending"]) >= count)

    def until(self, holds: Callable[[], bool], seconds: float = 40.0) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "it never came to be"
            time.sleep(0.02)

    def close(self) -> None:
        self.connection.close()


@contextmanager
def callbacks_world() -> Iterator[CallbacksWorld]:
    with migrated_database("callbacks") as url, closing(CallbacksWorld(url)) as world:
        yield world


class Posted(NamedTuple):
    """A request as received. Header names are lower-case."""

    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float
    method: str = "POST"


Answer = bytes | float  # what is written, or how long nothing is
Script = Callable[[Posted], bytes | Awaitable[bytes]]
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    """Return the bytes of a response: `answer("410 Gone", "retry-after: 3")`."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Receiver:
    """An HTTP server that stores its requests and responds as the script says."""

    def __init__(self, script: Script = lambda _: OK) -> None:
        self.script = script
        self.posted: list[Posted] = []
        self.port = 0
        self.connections = 0
        self.serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def ids(self) -> list[str]:
        return [each.headers["webhook-id"] for each in self.posted]

    def sequences(self) -> list[int]:
        return [int(each.split("_")[2]) for each in self.ids()]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                headers: dict[str, str] = {}
                while (header := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path = line.decode().split()[:2]
                posted = Posted(path, headers, body, time.monotonic(), method)
                self.posted.append(posted)
                found = self.script(posted)
                writer.write(found if isinstance(found, bytes) else await found)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiver(
    script: Script = lambda _: OK, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    made = Receiver(script)
    server = await asyncio.start_server(made.accept, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        serving = list(made.serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


@asynccontextmanager
async def draining(
    world: CallbacksWorld,
    *,
    allow: Sequence[str] = LOOPBACK,
    units: set[asyncio.Task[int]] | None = None,
) -> AsyncIterator[CallbackDispatcher]:
    """Run a drain in this test's own loop; `units` gets its units of work."""
    settings = DispatcherSettings(world.url, world.url, KEYRING, parse_allowed(allow), disable)
    units = set() if units is None else units
    drain = CallbackDispatcher(
        settings,
        lambda: units.add(asyncio.create_task(drain.unit())),
        HubMember("worker").beat,
    )
    stop = asyncio.Event()
    running = asyncio.create_task(drain.run(stop))
    try:
        yield drain
    finally:
        stop.set()
        await running
        await asyncio.gather(*units, return_exceptions=True)


async def claim_parallel(connection: Connection, requested: Mapping[int, int]) -> list[Claimed]:
    """Claim deliveries, for each endpoint at most so many."""
    groups = await claim_groups(connection, requested)
    return [each for group in groups for each in group.deliveries()]


async def until(holds: Callable[[], bool], seconds: float = 40.0) -> None:
    """Wait for something that happens in the background."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - it is in a database or in another process
            await asyncio.sleep(0.01)
