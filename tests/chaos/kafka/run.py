"""The command `python -m tests.chaos kafka`: records of a cluster of Apache Kafka become events,
which a sink writes to another topic, while brokers and processes of the hub are killed. See
docs/chaos.md, "Kafka".
"""

import argparse
import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import aiohttp
import orjson
import psycopg

from eventhub.event import protobuf_codec
from tests.chaos import report
from tests.chaos.callbacks.receivers import ask
from tests.chaos.hub import Crew, HubUnderTest, send_signal
from tests.chaos.kafka import judge
from tests.chaos.kafka.brokers import PASSWORD, USER, VARIABLE, Broker, Brokers, brokers, class_path
from tests.chaos.kafka.judge import Copy, ReadRecord, StoredEvent
from tests.chaos.kafka.writers import Place, Transactor, Writer
from tests.chaos.until import NeverCame, until, until_true
from tests.kafka_cluster import KafkaCluster

CREW = Crew(web=1, forwarders=2, workers=2, connectors=2)
CONNECTORS, FORWARDERS, WORKERS = (
    tuple(f"{name}-{number}" for number in (1, 2)) for name in ("connect", "forward", "worker")
)
PARTITIONS = 4
TRANSACTIONS = 0.3  # of the records
ABSENCE_S = (0.0, 4.0)  # of a broker that was killed
FROZEN_S = (4.0, 14.0)  # the attempt of a sink has 10; other brokers wait for 9
PATIENCE_S = 300.0
START_S = 90.0
SHARES = {"p50": 0.5, "p99": 0.99, "worst": 1.0}
STORED: LiteralString = """
    SELECT e.sequence, e.payload, extract(epoch FROM e.appended_at)::float8
      FROM streams s JOIN segments g ON g.stream_id = s.id JOIN events e ON e.segment_id = g.id
     WHERE s.name = 'orders' ORDER BY e.sequence"""
READ: LiteralString = "SELECT rows, refused FROM connector_states"
BEHIND: LiteralString = """
    SELECT coalesce(sum(h.sequence - f.sequence), 0)::bigint,
           (SELECT count(*) FROM deliveries WHERE state = 'pending')
      FROM forwarding f JOIN heads h ON h.stream_id = f.stream_id
      JOIN streams s ON s.id = f.stream_id WHERE s.name = 'orders'"""
ENDED: LiteralString = "SELECT state, count(*) FROM deliveries GROUP BY state"


class Scene(NamedTuple):
    """The systems under test; the topics that are read and written."""

    hub: HubUnderTest
    brokers: Brokers
    cluster: KafkaCluster
    topics: tuple[str, str]
    writers: Sequence[Writer]
    dice: random.Random


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given = os.environ.get(VARIABLE, "")
    parser.add_argument("--rate", type=float, default=1_000.0, help="records written per second")
    parser.add_argument("--rounds", type=int, default=20, help="faults, one after the other")
    parser.add_argument("--pause", type=float, default=6.0, help="seconds between two faults")
    parser.add_argument("--brokers", type=int, default=1, help="1, or 3 and more")
    parser.add_argument(
        "--class-path",
        type=class_path,
        default=given,
        help=f"of Apache Kafka's broker; by default that of {VARIABLE}",
    )


async def run(options: argparse.Namespace, data: Path) -> int:
    """Write records under faults, then compare both topics with the log. Return the exit status."""
    print(f"seed {options.seed}, data {data}", flush=True)
    dice = random.Random(options.seed)
    async with _scene(options, data, dice) as scene:
        for writer in scene.writers:
            writer.start()
        began_s = time.monotonic()
        faults = await _harmed(scene, options.rounds, options.pause)
        for writer in scene.writers:
            writer.end()
        for writer in scene.writers:
            await asyncio.to_thread(writer.join)
        seconds = time.monotonic() - began_s
        summary, problems = await _judged(scene)
    rate = round(summary["records"] / seconds)
    summary = {"seed": options.seed, "brokers": options.brokers, "faults": faults, **summary}
    summary["records_per_s"] = rate
    print(", ".join(f"{name} {value}" for name, value in summary.items()), flush=True)
    return report.end(options.json, summary, problems)


@asynccontextmanager
async def _scene(
    options: argparse.Namespace, data: Path, dice: random.Random
) -> AsyncIterator[Scene]:
    """Start the cluster and the hub, and connect both ways; stop everything at the end."""
    with brokers(data / "kafka", options.class_path, options.brokers) as started:
        await until(lambda: all(one.listens() for one in started), "the brokers", START_S)
        cluster = KafkaCluster(started.servers, None)
        topics = (cluster.topic(PARTITIONS), cluster.topic(PARTITIONS))
        started.grant(*topics)
        given = (started.servers, topics[0])
        writers = [
            Writer("plain", *given, options.rate * (1 - TRANSACTIONS)),
            Transactor("exact", *given, options.rate * TRANSACTIONS, dice=dice),
        ]
        hub = HubUnderTest(data / "hub", CREW, EVENTHUB_CALLBACK_ALLOW="127.0.0.1")
        try:
            await hub.ready()
            scene = Scene(hub, started, cluster, topics, writers, dice)
            await _connect(scene)
            yield scene
        finally:
            for writer in writers:
                writer.end()
            hub.stop()


async def _connect(scene: Scene) -> None:
    """Create the stream, the connector and the sink."""
    read, written = scene.topics
    headers = {"Authorization": f"Bearer {scene.hub.create_key('shop')}"}
    settings = {"ca": scene.brokers.ca}
    servers = scene.brokers.secure_servers
    connector = {
        "kind": "kafka",
        "url": f"kafkas://{USER}:{PASSWORD}@{servers}",
        "name": "shop",
        "stream": "orders",
        "settings": {"topics": [read], **settings},
    }
    sink = {
        "kind": "kafka",
        "url": f"kafkas://{servers}",
        "authentication": {"type": "basic", "username": USER, "password": PASSWORD},
        "settings": {"topic": written, **settings},
        "timeout_s": 10,
        "retry_schedule": [1] * 20,
    }
    async with aiohttp.ClientSession(headers=headers) as http:
        url = f"{scene.hub.url}/v1"
        await ask(http, "PUT", f"{url}/streams/orders", {})
        endpoint = await ask(http, "POST", f"{url}/endpoints", sink)

        async def is_checked() -> bool:
            found = await ask(http, "GET", f"{url}/endpoints/{endpoint['id']}", None)
            if found["verification"]["state"] == "failed":
                raise RuntimeError(f"The sink is refused: {found['verification']}")
            return bool(found["enabled"])

        await until_true(is_checked, "the sink to be checked", PATIENCE_S)
        registration = {"streams": ["orders"], "endpoint": endpoint["id"]}
        await ask(http, "POST", f"{url}/registrations", [registration])
        await ask(http, "POST", f"{url}/connectors", connector)


async def _harmed(scene: Scene, rounds: int, pause_s: float) -> dict[str, int]:
    """Kill and freeze in random turns; return how often each fault was."""
    began_s = time.monotonic()
    faults: Counter[str] = Counter()
    names: list[str] = []
    for _ in range(rounds):
        await asyncio.sleep(pause_s * (0.5 + scene.dice.random()))
        names = names or scene.dice.sample([*FAULTS], len(FAULTS))
        name = names.pop()
        faults[name] += 1
        print(f"{time.monotonic() - began_s:6.1f} s  {name}", flush=True)
        await FAULTS[name](scene)
    await asyncio.sleep(pause_s)
    return dict(faults)


async def _judged(scene: Scene) -> tuple[dict[str, Any], list[str]]:
    """Wait until all is read and written; return the figures and what is wrong."""
    records = await asyncio.to_thread(_records, scene)
    problems = await _settled(scene, len(records))
    events, late_s = await asyncio.to_thread(_events, scene.hub)
    copies = await asyncio.to_thread(_copies, scene)
    written = [writer.written for writer in scene.writers]
    problems += judge.records_wrong(records, written)
    problems += judge.events_wrong(records, events)
    problems += judge.copies_wrong(events, copies)
    ended = dict(await scene.hub.rows(ENDED))
    problems += [f"{n} deliveries are {s}" for s, n in ended.items() if s != "delivered"]
    summary = {
        "records": len(records),
        "aborted": sum(len(one.aborted) for one in written),
        "events": len(events),
        "copies": len(copies),
        "repeats": judge.repeats(copies),
        **{f"late_{name}_s": _share(late_s, share) for name, share in SHARES.items()},
    }
    return summary, problems


async def _settled(scene: Scene, count: int) -> list[str]:
    """Wait until so many records are read, and all events are written."""

    async def is_quiet() -> bool:
        await asyncio.sleep(0.5)
        try:
            [[rows, refused]] = await scene.hub.rows(READ)
            [[behind, pending]] = await scene.hub.rows(BEHIND)
        except psycopg.OperationalError:
            return False
        return bool(rows + refused >= count and not behind and not pending)

    try:
        await until_true(is_quiet, f"{count} records to be read, and written again", PATIENCE_S)
    except NeverCame as error:
        return [str(error)]
    return []


def _records(scene: Scene) -> list[ReadRecord]:
    """Return what was written and committed."""
    return [
        ReadRecord((one.partition, one.offset), one.key, _place(orjson.loads(one.value or b"")))
        for one in scene.cluster.records(scene.topics[0])
    ]


def _events(hub: HubUnderTest) -> tuple[list[StoredEvent], list[float]]:
    """Return the events, and how long after their records they were appended."""
    found, late_s = [], []
    with hub.connect_plainly() as connection:
        for sequence, payload, appended_s in connection.execute(STORED):
            event = protobuf_codec.decode(bytes(payload))
            _, partition, offset = str(event.id).rsplit("-", 2)
            place = _place(orjson.loads(event.body or b""))
            where = (int(partition), int(offset))
            found.append(StoredEvent(sequence, where, event.key, place))
            late_s.append(appended_s - event.time_us / 1e6)
    return found, sorted(late_s) or [0.0]


def _copies(scene: Scene) -> list[Copy]:
    """Return what the sink wrote."""
    return [
        Copy(
            one.partition,
            one.headers["eventhub-delivery"],
            int(one.headers["eventhub-sequence"]),
            _place(orjson.loads(one.value or b"")["event"]["body"]),
        )
        for one in scene.cluster.records(scene.topics[1])
    ]


def _place(value: dict[str, Any]) -> Place:
    return Place(value["writer"], value["n"])


def _share(ordered: Sequence[float], share: float) -> float:
    return round(ordered[int((len(ordered) - 1) * share)], 2)


async def _kill_broker(scene: Scene) -> None:
    """Kill a broker, and start it again, mostly later: as long as the machine needs, or longer."""
    broker: Broker = scene.dice.choice(scene.brokers)
    await asyncio.to_thread(broker.kill)
    await asyncio.sleep(scene.dice.uniform(*ABSENCE_S))
    broker.start()
    await until(broker.listens, "the broker", START_S)


async def _freeze_broker(scene: Scene) -> None:
    """Stop a broker for a while: acknowledgements are late, or their requests are repeated."""
    broker: Broker = scene.dice.choice(scene.brokers)
    broker.signal(signal.SIGSTOP)
    await asyncio.sleep(scene.dice.uniform(*FROZEN_S))
    broker.signal(signal.SIGCONT)


def _kill(scene: Scene, parts: Sequence[str]) -> None:
    """Kill one or both of two equal processes."""
    chosen = scene.dice.sample(parts, scene.dice.randint(1, len(parts)))
    send_signal(scene.hub.pids(chosen), signal.SIGKILL)


async def _kill_connectors(scene: Scene) -> None:
    _kill(scene, CONNECTORS)


async def _kill_forwarders(scene: Scene) -> None:
    _kill(scene, FORWARDERS)


async def _kill_workers(scene: Scene) -> None:
    _kill(scene, WORKERS)


async def _kill_all(scene: Scene) -> None:
    send_signal(scene.hub.pids([*CONNECTORS, *FORWARDERS, *WORKERS]), signal.SIGKILL)
    await _kill_broker(scene)


FAULTS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "a broker is killed": _kill_broker,
    "a broker is frozen": _freeze_broker,
    "connectors are killed": _kill_connectors,
    "forwarders are killed": _kill_forwarders,
    "workers are killed": _kill_workers,
    "all are killed": _kill_all,
}
