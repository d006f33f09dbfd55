"""The command `python -m tests.chaos outbox`: an outbox table in a PostgreSQL server of its own,
under inserts, while connectors, servers and connections are killed. See docs/chaos.md, "Outboxes".
"""

import argparse
import asyncio
import random
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import aiohttp
import psycopg
from psycopg.conninfo import conninfo_to_dict

from eventhub.event import protobuf_codec
from eventhub.supervisor.embedded import embedded
from eventhub.supervisor.postgres import SOCKET
from tests.chaos import report
from tests.chaos.hub import Crew, HubUnderTest, send_signal
from tests.chaos.until import NeverCame, until_true
from tests.tcp_relay import Relay, relay_to

CONNECTORS = ("connect-1", "connect-2")
WRITERS = 4
SLOW_S = 0.5  # of one transaction in a thousand
FROZEN_S = 18.0  # the server ends the session of a leader within 15
PATIENCE_S = 120.0
SETTINGS = {
    "outbox-polling": {"order": "created", "transaction": "transaction_id"},
    "outbox-replication": {"slot": "hub", "publication": "hub"},
}
TABLE: LiteralString = """
    CREATE TABLE outbox (
        id text PRIMARY KEY, created bigint GENERATED ALWAYS AS IDENTITY,
        transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
        at timestamptz NOT NULL DEFAULT clock_timestamp(), type text NOT NULL, payload jsonb)"""
NAME: LiteralString = "outbox"  # of a table that the hub's own database does not have
INSERT: LiteralString = f"INSERT INTO {NAME} (id, type, payload) VALUES (%s, %s, %s)"
EXPECTED: LiteralString = f"""
    SELECT id, extract(epoch FROM at)::float8 FROM {NAME} ORDER BY transaction_id, created"""
STORED: LiteralString = """
    SELECT e.payload, extract(epoch FROM e.appended_at)::float8
      FROM streams s JOIN segments g ON g.stream_id = s.id JOIN events e ON e.segment_id = g.id
     WHERE s.name = 'orders' ORDER BY e.sequence"""


class Shop:
    """The database with the outbox. `url`: of the server itself; `relay`: the way of the hub."""

    def __init__(self, url: str, relay: Relay) -> None:
        self.url = url
        self.relay = relay
        self.ended = threading.Event()
        with self.connect() as connection:
            connection.execute(TABLE)
            connection.execute("CREATE INDEX ON outbox (transaction_id, created)")

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def write(self, writer: int, per_s: float, dice: random.Random) -> None:
        """Insert rows at a rate until the end: most at once, some slowly, some rolled back."""
        began_s, done = time.monotonic(), 0
        with self.connect() as connection:
            while not self.ended.wait(max(began_s + done / per_s - time.monotonic(), 0)):
                size, chance = dice.randint(1, 7), dice.random()
                with connection.transaction(force_rollback=chance < 0.1):
                    for number in range(done, done + size):
                        values = (f"{writer}-{number}", "placed", f'{{"n": {number}}}')
                        connection.execute(INSERT, values)
                    if chance > 0.999:
                        self.ended.wait(SLOW_S)
                done += size


class Scene(NamedTuple):
    """The two systems under test."""

    hub: HubUnderTest
    shop: Shop
    dice: random.Random


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=float, default=1_000.0, help="rows inserted per second")
    parser.add_argument("--kind", choices=[*SETTINGS], default="outbox-polling")
    parser.add_argument("--rounds", type=int, default=12, help="faults, one after the other")
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between two faults")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Insert under faults, then compare the table with the log. Return the exit status."""
    dice = random.Random(options.seed)
    print(f"seed {options.seed}, data {data}", flush=True)
    with embedded(data / "shop") as env, psycopg.connect(env["DATABASE_URL"]) as connection:
        connection.autocommit = True
        connection.execute("ALTER SYSTEM SET wal_level = logical")
    with embedded(data / "shop") as env:
        folder = Path(str(conninfo_to_dict(env["DATABASE_URL"])["host"]))
        with relay_to(str(folder / SOCKET)) as relay:
            shop = Shop(env["DATABASE_URL"], relay)
            crew = Crew(web=1, connectors=len(CONNECTORS))
            hub = HubUnderTest(data / "hub", crew, EVENTHUB_CALLBACK_ALLOW="127.0.0.1")
            try:
                await hub.ready()
                return await _judged(Scene(hub, shop, dice), options)
            finally:
                shop.ended.set()
                hub.stop()


async def _judged(scene: Scene, options: argparse.Namespace) -> int:
    await _connect(scene, options.kind)
    own = [random.Random(scene.dice.random()) for _ in range(WRITERS)]
    per_s = options.rate / WRITERS
    writing = [
        asyncio.create_task(asyncio.to_thread(scene.shop.write, number, per_s, one))
        for number, one in enumerate(own)
    ]
    began_s = time.monotonic()
    faults: dict[str, int] = {}
    names = [*FAULTS]
    for number in range(options.rounds):
        await asyncio.sleep(options.pause * (0.5 + scene.dice.random()))
        name = names[number % len(names)]
        faults[name] = faults.get(name, 0) + 1
        print(f"{time.monotonic() - began_s:6.1f} s  {name}", flush=True)
        await FAULTS[name](scene)
    await asyncio.sleep(options.pause)
    scene.shop.ended.set()
    await asyncio.gather(*writing)
    seconds = time.monotonic() - began_s
    with scene.shop.connect() as connection:
        expected = connection.execute(EXPECTED).fetchall()
    problems = await _wait_stored(scene, len(expected))
    stored = await asyncio.to_thread(_stored, scene.hub)
    compared = _compared(expected, stored, seconds, by_commit=options.kind == "outbox-replication")
    summary = {"kind": options.kind, "seed": options.seed, "faults": faults, **compared}
    print(", ".join(f"{name} {value}" for name, value in summary.items()), flush=True)
    lost, repeated, in_order = (summary[name] for name in ("lost", "repeated", "in_order"))
    if lost or repeated or not in_order:
        problems.append(f"{lost} rows lost, {repeated} repeated; in order: {in_order}")
    return report.end(options.json, summary, problems)


async def _connect(scene: Scene, kind: str) -> None:
    """Create the stream and the connector, and what it reads."""
    if kind == "outbox-replication":
        with scene.shop.connect() as connection:
            connection.execute("CREATE PUBLICATION hub FOR TABLE outbox WITH (publish = 'insert')")
            connection.execute("SELECT pg_create_logical_replication_slot('hub', 'pgoutput')")
    parts = conninfo_to_dict(scene.shop.url)
    url = f"postgresql://{parts['user']}@127.0.0.1:{scene.shop.relay.port}/{parts['dbname']}"
    settings = {"table": "outbox", "body": "payload", **SETTINGS[kind]}
    body = {"name": "shop", "stream": "orders", "kind": kind, "url": url, "settings": settings}
    headers = {"Authorization": f"Bearer {scene.hub.create_key('shop')}"}
    async with aiohttp.ClientSession(scene.hub.url, headers=headers) as session:
        for method, path, given in (
            ("PUT", "/v1/streams/orders", {}),
            ("POST", "/v1/connectors", body),
        ):
            async with session.request(method, path, json=given) as answer:
                answer.raise_for_status()


async def _wait_stored(scene: Scene, count: int) -> list[str]:
    async def all_read() -> bool:
        try:
            [[rows]] = await scene.hub.rows("SELECT rows FROM connector_states")
        except psycopg.OperationalError:  # the server is being started
            return False
        return bool(rows >= count)

    try:
        await until_true(all_read, f"{count} rows", PATIENCE_S)
    except NeverCame as error:
        return [str(error)]
    return []


def _stored(hub: HubUnderTest) -> list[tuple[bytes, float]]:
    with hub.connect_plainly() as connection:
        return connection.execute(STORED).fetchall()


def _compared(
    expected: list[tuple[str, float]],
    stored: list[tuple[bytes, float]],
    seconds: float,
    *,
    by_commit: bool,
) -> dict[str, Any]:
    """Return what became of the rows, and how late their events were appended. `by_commit`: they
    are in the order of commits, of which only that of each writer is known.
    """
    found = [str(protobuf_codec.decode(bytes(payload)).id) for payload, _ in stored]
    ids = [id for id, _ in expected]
    inserted_s = dict(expected)
    appended_s = (at_s for _, at_s in stored)
    late = sorted(
        at_s - inserted_s.get(id, at_s) for id, at_s in zip(found, appended_s, strict=True)
    )
    late = late or [0.0]
    at = {name: late[int((len(late) - 1) * share)] for name, share in SHARES.items()}
    return {
        "rows": len(ids),
        "rows_per_s": round(len(ids) / seconds),
        "lost": len({*ids} - {*found}),
        "repeated": len(found) - len({*found}),
        "in_order": sorted(found, key=_writer) == sorted(ids, key=_writer)
        if by_commit
        else found == ids,
        **{f"late_{name}_s": round(value, 2) for name, value in at.items()},
    }


def _writer(id: str) -> str:
    return id.partition("-")[0]


SHARES = {"p50": 0.5, "p99": 0.99, "worst": 1.0}


async def _kill_one(scene: Scene) -> None:
    send_signal(scene.hub.pids([scene.dice.choice(CONNECTORS)]), signal.SIGKILL)


async def _kill_both(scene: Scene) -> None:
    send_signal(scene.hub.pids(CONNECTORS), signal.SIGKILL)


async def _freeze(scene: Scene) -> None:
    """Stop one process for longer than a leader may, and let it go on beside its successor."""
    chosen = scene.hub.pids([scene.dice.choice(CONNECTORS)])
    send_signal(chosen, signal.SIGSTOP)
    await asyncio.sleep(FROZEN_S)
    send_signal(chosen, signal.SIGCONT)


async def _cut(scene: Scene) -> None:
    """Break the connections to the shop, and refuse new ones for a second."""
    scene.shop.relay.stop()
    await asyncio.sleep(1.0)
    scene.shop.relay.listen()


async def _kill_hub_postgres(scene: Scene) -> None:
    send_signal(scene.hub.pids(["postgres"]), signal.SIGKILL)


FAULTS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "a connector process is killed": _kill_one,
    "both are killed": _kill_both,
    "the connections are cut": _cut,
    "a connector process is frozen": _freeze,
    "the hub's PostgreSQL is killed": _kill_hub_postgres,
}
