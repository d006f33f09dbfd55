"""Over all its incarnations a client receives every event that matches its filter, and an audit
proves it (FOX-23).
"""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event as Over
from threading import Thread
from typing import Any

import orjson
import pytest
from pyspark.sql import SparkSession

from sparkjobs.audit.listeners import SKIPPED, ListenerTables, audit_listeners
from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec
from sparkjobs.runs.export.snapshot import ExportRequest, export_inputs
from tests.acceptance.wire import EVENT, Emitter
from tests.live import LiveHub, LiveZone
from tests.live_processes import WebProcess

STREAM = "orders"
WAIT_S = 60.0


@pytest.fixture
def three(hub: LiveHub, tmp_path: Path) -> Iterator[LiveHub]:
    """Return the hub with three web processes."""
    third = WebProcess("web-3", hub.env, tmp_path / "web-3.log")
    third.start()
    hub.web.append(third)
    try:
        yield hub
    finally:
        hub.web.remove(third)
        third.stop()


class ListeningCommand:
    """`eventhub listen`, restarted: it prints what it receives, and its cursor file says where the
    next incarnation resumes.
    """

    def __init__(self, hub: LiveHub, key: str, folder: Path) -> None:
        self._hub = hub
        self._key = key
        self._printed = folder / "received.jsonl"
        self.cursor = folder / "cursor"
        self.database = folder / "received.sqlite"
        self._process: subprocess.Popen[bytes] | None = None
        self._before = 0  # events that earlier incarnations received
        self._starts: list[int] = []  # lines printed before each incarnation

    def start(self, web: int) -> None:
        """Start another incarnation, at one of the web processes."""
        options = ["--from", "oldest", "--type", EVENT["type"], "--cursor-file", str(self.cursor)]
        options += ["--sqlite", str(self.database)]
        command = [sys.executable, "-m", "eventhub_client", "listen", STREAM, *options]
        env = {**self._hub.env, "EVENTHUB_URL": self._hub.web[web].url, "EVENTHUB_KEY": self._key}
        self._before = len(set(self.received()))
        self._starts.append(len(self.received()))
        with self._printed.open("ab") as out:
            self._process = subprocess.Popen(command, stdout=out, env=env)

    def leave(self) -> None:
        """Stop the command gracefully."""
        self._running.terminate()
        self._running.wait(WAIT_S)

    async def saves(self, sequence: int) -> None:
        """Wait until the cursor file has a sequence, or a later one."""
        async with asyncio.timeout(WAIT_S):
            while self._saved() < sequence:
                assert self._running.poll() is None, "the client has ended"
                await asyncio.sleep(0.05)

    def _saved(self) -> int:
        return int(orjson.loads(self.cursor.read_bytes())["sequence"])

    def crash(self) -> int:
        """Kill the command; return the last sequence in its cursor file."""
        self._running.kill()
        self._running.wait(WAIT_S)
        return self._saved()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def received(self) -> list[int]:
        """Return the received sequences in order of arrival."""
        if not self._printed.exists():
            return []
        return [orjson.loads(line)["sequence"] for line in self._printed.read_bytes().splitlines()]

    def received_by_each(self) -> list[list[int]]:
        """Return what each incarnation received."""
        received = self.received()
        ends = [*self._starts[1:], len(received)]
        return [received[start:end] for start, end in zip(self._starts, ends, strict=True)]

    def written(self) -> list[int]:
        """Return the sequences in the database of the command, in order."""
        with closing(sqlite3.connect(self.database)) as database:
            rows = database.execute("SELECT sequence FROM events ORDER BY sequence").fetchall()
        return [sequence for [sequence] in rows]

    async def receives(self, count: int) -> None:
        """Wait until this incarnation has received `count` events that no earlier one did."""
        async with asyncio.timeout(WAIT_S):
            while len(set(self.received())) < self._before + count:
                assert self._running.poll() is None, "the client has ended"
                await asyncio.sleep(0.05)

    async def receives_all(self, issued: list[int]) -> None:
        """Wait until all incarnations together have received as many events as were issued."""
        await self.receives(len(issued) - self._before)


class Issuer:
    """An emitter of events of two types, until the block ends."""

    def __init__(self, zone: LiveZone) -> None:
        self._zone = zone
        self._over = Over()
        self._thread = Thread(target=self._issue)
        self.issued: list[int] = []  # events that match the client's filter

    def __enter__(self) -> "Issuer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    async def issues(self, count: int) -> None:
        """Wait until `count` more events were issued."""
        enough = len(self.issued) + count
        async with asyncio.timeout(WAIT_S):
            while len(self.issued) < enough:
                assert self._thread.is_alive()
                await asyncio.sleep(0.05)

    def _issue(self) -> None:
        with Emitter(self._zone) as emitter:
            while not self._over.wait(0.05):
                self.issued += emitter.numbers(STREAM, [EVENT, EVENT])
                emitter.numbers(STREAM, {**EVENT, "type": "order.noted"})


@pytest.mark.req("FOX-23")
async def test_four_incarnations_of_a_client_receive_everything_and_the_audit_proves_it(
    three: LiveHub, spark: SparkSession, tmp_path: Path
) -> None:
    zone = three.new_zone()
    zone.create_stream(STREAM, segment_events_max=500)
    client = ListeningCommand(three, zone.key("listen:*", client="desk"), tmp_path)
    with Issuer(zone) as issuer:
        client.start(web=0)
        await client.receives(60)
        client.leave()
        client.start(web=1)  # another process
        await client.receives(60)
        await client.saves(client.received()[-1])  # not only at its end
        await client.receives(62)
        saved = client.crash()
        client.start(web=2)
        await client.receives(60)
        three.web[2].kill()  # while the client is connected
        client.leave()
        await issuer.issues(50)  # while nobody listens
    client.start(web=1)
    await client.receives_all(issuer.issued)
    client.leave()
    three.web[2].start()
    first, second, third, fourth = client.received_by_each()
    repeated = [n for n in second if n > saved]
    assert third[: len(repeated)] == repeated, "what came after the cursor was saved comes again"
    assert len(repeated) < len(second), "what came before is not repeated"
    assert [*first, *second, *third[len(repeated) :], *fourth] == issuer.issued, "all else once"
    assert client.written() == issuer.issued, "a consumer that knows the cursors has each once"

    # the hub's own proof
    _until_ended(three, zone, count=4)
    faults, [proof] = _audited(three, zone, spark, tmp_path / "run-1")
    assert faults == []
    assert (proof["client"], proof["incarnations"], proof["nodes"]) == ("desk", 4, 3)
    assert proof["expected"] == proof["delivered"] == len(issuer.issued)
    assert (proof["skipped"], proof["unchecked"]) == (0, 0)

    # a range that the client skips
    behind = zone.emit(STREAM, [EVENT] * 10).json["ranges"][-1]["last"] - 5
    cursor = {"stream": STREAM, "segment": _segment(zone, behind), "sequence": behind}
    client.cursor.write_bytes(orjson.dumps(cursor))
    client.start(web=0)
    await client.receives(5)
    client.leave()
    _until_ended(three, zone, count=5)
    faults, [proof] = _audited(three, zone, spark, tmp_path / "run-2")
    [fault] = faults
    assert (fault["kind"], fault["client"]) == (SKIPPED, "desk")
    assert fault["last"] == behind
    assert "5 events" in fault["evidence"]
    assert (proof["expected"], proof["delivered"]) == (
        len(issuer.issued) + 10,
        len(issuer.issued) + 5,
    )


def _until_ended(hub: LiveHub, zone: LiveZone, *, count: int) -> None:
    """Wait until the record says that the last listener ended."""
    end = time.monotonic() + WAIT_S
    while True:
        rows = hub.call("GET", "/v1/clients/desk/listeners", key=zone.admin).json["items"]
        if len(rows) == count and rows[0]["ended_at"] is not None:
            return
        assert time.monotonic() < end, rows
        time.sleep(0.1)


def _segment(zone: LiveZone, sequence: int) -> str:
    """Return the UUID of the segment that contains an event."""
    [[uuid]] = zone.hub.sql(
        "SELECT g.uuid::text FROM segments g JOIN streams s ON s.id = g.stream_id"
        " JOIN zones z ON z.id = s.zone_id WHERE z.name = %s AND s.name = %s AND g.first <= %s"
        " ORDER BY g.first DESC LIMIT 1",
        *(zone.name, STREAM, sequence),
    )
    return str(uuid)


def _audited(
    hub: LiveHub, zone: LiveZone, spark: SparkSession, folder: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the audit's faults and client sums of a zone."""
    folder.mkdir()
    [[zone_id]] = hub.sql("SELECT id FROM zones WHERE name = %s", zone.name)
    tables = frozenset((*ListenerTables._fields, "versions", "suspensions", "types"))
    archive = (folder / "archive").as_uri()
    export = ExportRequest(hub.database_url, archive, folder, tables, zone_id=zone_id, events=True)
    snapshot = export_inputs(export, lambda table, rows: None)
    work = str(folder / "work")
    order = JobSpec("audit", 1, {}, str(folder), work, "", archive, snapshot.now_us)
    found = audit_listeners(
        order, ListenerTables(*(table(spark, order, name) for name in ListenerTables._fields))
    )
    return (
        [row.asDict() for row in found.faults.collect()],
        [row.asDict() for row in found.clients.collect()],
    )
