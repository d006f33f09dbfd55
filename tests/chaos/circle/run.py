"""The command `python -m tests.chaos circle`: emit, seal, archive, build the index by Spark, switch
to it, deliver, audit; plant faults; audit again.
"""

import argparse
import asyncio
import csv
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import LiteralString, NamedTuple

import aiohttp

from sparkjobs.result import StoredResult, read_result
from tests.chaos import report
from tests.chaos.callbacks.receivers import Endpoint, SinkProcess, ask, create_endpoints
from tests.chaos.callbacks.world import CREW
from tests.chaos.circle import plant
from tests.chaos.circle.flow import ASKED, Flow, device_of
from tests.chaos.circle.plant import Fault, Sealed
from tests.chaos.hub import HubUnderTest
from tests.chaos.judge import shorten
from tests.chaos.until import until_true

STREAMS = ("north", "east", "south", "west")
SEGMENTS = 5  # of each stream, all full
ENDPOINTS = {"one": Endpoint(), "two": Endpoint(), "lane": Endpoint(ordered=True)}
BEFORE, AFTER = 0.3, 0.7  # of the events: what lies between flows while indexes are built ...
PIECES, PACE_S = 100, 1.5  # ... a piece of so many now and then
PATIENCE_S = 1_200.0
AUDIT_PROBLEMS = 3  # the status of `manage.py sparkjob audit` that has found something

PENDING: LiteralString = "SELECT count(*) FROM deliveries WHERE state <> 'delivered'"
BEHIND: LiteralString = (
    "SELECT sum(h.sequence - f.sequence)::bigint, count(*) FROM forwarding f"
    " JOIN heads h ON h.stream_id = f.stream_id JOIN streams s ON s.id = f.stream_id"
    " WHERE s.name = ANY (%s)"
)
ARCHIVED: LiteralString = "SELECT count(*) FROM segments WHERE archive_path IS NOT NULL"
DELIVERED: LiteralString = (
    "SELECT s.name, d.sequence, d.endpoint_id, d.registrations FROM deliveries d"
    " JOIN streams s ON s.id = d.stream_id"
)


class Scene(NamedTuple):
    """A hub with streams, endpoints and registrations: `registrations` by stream and device."""

    hub: HubUnderTest
    http: aiohttp.ClientSession
    flows: list[Flow]
    registrations: dict[tuple[str, int], tuple[int, int]]  # endpoint, registration
    events: int  # of each stream


class Clock:
    """The seconds of each step."""

    def __init__(self) -> None:
        self.took_s: dict[str, float] = {}
        self._at = time.monotonic()

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self.took_s[name] = round(now - self._at, 1)
        self._at = now
        print(f"{name}: {self.took_s[name]:,} s", flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000, help="of all streams together")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Return the exit status."""
    clock, problems = Clock(), list[str]()
    async with scene_of(data, options) as scene:
        clock.lap("start")
        await flow(scene, clock)
        await settle(scene)
        clock.lap("deliver and archive")
        problems += await asyncio.to_thread(doubled_or_missed, scene)
        clock.lap("judge deliveries")
        before = await asyncio.to_thread(audit, scene.hub, 0, problems)
        clock.lap("audit")
        if before.files:
            problems += [f"nothing was planted: {found}" for found in findings(scene.hub, before)]
        faults = await asyncio.to_thread(plant_all, scene, random.Random(options.seed))
        clock.lap("plant")
        after = await asyncio.to_thread(audit, scene.hub, AUDIT_PROBLEMS, problems)
        clock.lap("audit again")
        problems += compared(faults, findings(scene.hub, after))
    summary: dict[str, object] = {
        "seed": options.seed,
        "events": options.events,
        "seconds": clock.took_s,
        "first_audit": before.result.summary,
        "second_audit": after.result.summary,
    }
    for name, value in summary.items():
        print(f"{name}: {value}")
    return report.end(options.json, summary, problems)


@asynccontextmanager
async def scene_of(data: Path, options: argparse.Namespace) -> AsyncIterator[Scene]:
    """Open a scene; stop everything at the end."""
    each = options.events // len(STREAMS)
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(data.mkdir, parents=True, exist_ok=True)
        sink = SinkProcess(data / "sink.ndjson", options.seed)
        stack.callback(sink.close)
        allow = f"127.0.0.1:{sink.port}"
        hub = HubUnderTest(data / "hub", CREW, EVENTHUB_CALLBACK_ALLOW=allow)
        stack.callback(hub.stop)
        await hub.ready()
        key = await asyncio.to_thread(hub.create_key, "circle")
        headers = {"Authorization": f"Bearer {key}"}
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        policy = {"segment_events_max": each // SEGMENTS, "archive": True}
        for name in STREAMS:
            await ask(http, "PUT", f"{hub.url}/v1/streams/{name}", policy)
        ids = await create_endpoints(http, hub.url, sink.url, ENDPOINTS)
        flows = [Flow(hub.url, key, name) for name in STREAMS]
        yield Scene(hub, http, flows, await register(http, hub.url, list(ids.values())), each)


async def register(
    http: aiohttp.ClientSession, url: str, endpoints: list[int]
) -> dict[tuple[str, int], tuple[int, int]]:
    """Create one registration per stream and requested device."""
    registrations: dict[tuple[str, int], tuple[int, int]] = {}
    for stream in STREAMS:
        for first in range(0, ASKED, 500):
            devices = range(first, min(first + 500, ASKED))
            requested = [
                {
                    "streams": [stream],
                    "attributes": {"device": f"d{device}"},
                    "endpoint": endpoints[device % len(endpoints)],
                }
                for device in devices
            ]
            made = await ask(http, "POST", f"{url}/v1/registrations", requested)
            for device, item in zip(devices, made["items"], strict=True):
                registrations[stream, device] = endpoints[device % len(endpoints)], item["id"]
    return registrations


async def flow(scene: Scene, clock: Clock) -> None:
    """Emit; while more events are emitted, build every stream's index by Spark; then emit the rest,
    which is matched from the indexes.
    """
    before = int(scene.events * BEFORE)
    await emit(scene, 0, before)
    clock.lap(f"emit {before * len(STREAMS):,}")
    building = asyncio.create_task(asyncio.to_thread(build_indexes, scene.hub))
    done, after, piece = before, int(scene.events * AFTER), scene.events // PIECES
    while not building.done() and done + piece <= after:
        await emit(scene, done, piece)
        done += piece
        await asyncio.wait({building}, timeout=PACE_S)
    await building
    clock.lap(f"build indexes beside {(done - before) * len(STREAMS):,}")
    await emit(scene, done, scene.events - done)
    clock.lap(f"emit {(scene.events - done) * len(STREAMS):,} after")


async def emit(scene: Scene, first: int, count: int) -> None:
    """Emit to all streams at once."""
    await asyncio.gather(*(flow.emit(first, count) for flow in scene.flows))


def build_indexes(hub: HubUnderTest) -> None:
    for stream in STREAMS:
        words = (
            "--param",
            "zone=default",
            "--param",
            f"stream={stream}",
            "--param",
            "engine=spark",
        )
        done = hub.manage("sparkjob", "match_index", *words)
        if done.returncode:
            raise RuntimeError(f"match_index of {stream}: {done.stdout} {done.stderr}")


async def settle(scene: Scene) -> None:
    """Wait until all events are sealed, archived, matched and delivered."""

    async def is_quiet() -> bool:
        await asyncio.sleep(1)
        [(behind, streams)] = await scene.hub.rows(BEHIND, list(STREAMS))
        [(pending,)] = await scene.hub.rows(PENDING)
        [(archived,)] = await scene.hub.rows(ARCHIVED)
        return (behind, streams, pending) == (0, len(STREAMS), 0) and archived >= _sealed()

    await until_true(is_quiet, "all to be archived, matched and delivered", PATIENCE_S)


def _sealed() -> int:
    return len(STREAMS) * SEGMENTS


def doubled_or_missed(scene: Scene) -> list[str]:
    """Compare the deliveries with those that follow from events and registrations."""
    expected: dict[tuple[str, int], tuple[int, list[int]]] = {}
    for flow in scene.flows:
        for sequence, number in enumerate(flow.numbers, 1):
            device = device_of(number)
            if device < ASKED:
                endpoint, registration = scene.registrations[flow.stream, device]
                expected[flow.stream, sequence] = endpoint, [registration]
    found: dict[tuple[str, int], tuple[int, list[int]]] = {}
    problems: list[str] = []
    with scene.hub.connect_plainly() as connection:
        for stream, sequence, endpoint, registrations in connection.execute(DELIVERED):
            if (stream, sequence) in found:
                problems.append(f"{stream} {sequence} is expected twice")
            found[stream, sequence] = endpoint, registrations
    problems += [f"{key} is missed" for key in expected.keys() - found.keys()]
    problems += [f"{key} is too much" for key in found.keys() - expected.keys()]
    differ = [key for key in expected if found.get(key) != expected[key]]
    problems += [f"{key} is expected otherwise" for key in differ]
    print(f"deliveries: {len(found):,} found, {len(expected):,} expected", flush=True)
    return shorten(problems)


def audit(hub: HubUnderTest, status: int, problems: list[str]) -> StoredResult:
    """Return the result of an audit, which must end with the given status."""
    done = hub.manage("sparkjob", "audit")
    if done.returncode != status:
        said = f"{done.stdout[-2_000:]} {done.stderr[-2_000:]}"
        problems.append(f"the audit ended with {done.returncode}, not {status}: {said}")
    return read_result(_last_run(hub))


def _last_run(hub: HubUnderTest) -> Path:
    [*_, last] = sorted((hub.data / "jobs" / "audit").iterdir())
    return last / "result"


def findings(hub: HubUnderTest, stored: StoredResult) -> list[Fault]:
    """Return the rows of the audit's table of findings."""
    with (_last_run(hub) / "findings.csv").open(newline="") as file:
        return [
            Fault(row["kind"], row["stream"], row["segment"], int(row["first"]), int(row["last"]))
            for row in csv.DictReader(file)
        ]


def plant_all(scene: Scene, dice: random.Random) -> list[Fault]:
    """Plant one fault of each kind, each in a segment of its own."""
    with scene.hub.connect_plainly() as connection:
        sealed = plant.sealed_of(connection, scene.hub.archive)
        assert len(sealed) == _sealed(), sealed
        lost_first, lost_last, lost, cut, twice, untried, forgotten = dice.sample(sealed, 7)
        return [
            plant.lose(lost_first, lost_first.first),
            plant.lose(lost_last, lost_last.last),
            plant.lose(lost, dice.randrange(lost.first + 1, lost.last)),
            plant.cut(cut),
            plant.repeat(twice, dice.randrange(twice.first, twice.last)),
            plant.forget_attempts(connection, untried, _pending_in(scene, untried, dice)),
            plant.forget_delivery(connection, forgotten, _pending_in(scene, forgotten, dice)),
        ]


def _pending_in(scene: Scene, segment: Sealed, dice: random.Random) -> int:
    """Return the sequence of an event of the segment that a registration matches."""
    [numbers] = [flow.numbers for flow in scene.flows if flow.stream == segment.stream]
    within = range(segment.first, segment.last + 1)
    return dice.choice([at for at in within if device_of(numbers[at - 1]) < ASKED])


def compared(planted: list[Fault], found: list[Fault]) -> list[str]:
    """Check that the audit reports the planted faults, and nothing else."""
    for fault in planted:
        print(f"planted {'and found' if fault in found else 'NOT FOUND'}: {fault}", flush=True)
    missing = [f"the audit does not name {fault}" for fault in planted if fault not in found]
    return missing + [f"the audit names {fault}" for fault in found if fault not in planted]
