"""The command `python -m tests.chaos quota`: see docs/chaos.md, "Quota"."""

import argparse
import asyncio
import random
import signal
import time
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import aiohttp

from tests.chaos import report
from tests.chaos.events import Interest
from tests.chaos.hub import HubUnderTest, send_signal
from tests.chaos.quota.flow import Flow
from tests.chaos.quota.judge import Segment, Verdict, judge
from tests.chaos.quota.readers import TRANSPORTS, Journal, Reader
from tests.chaos.until import until

QUOTA_BYTES = 64 * 1024 * 1024
KILL_EVERY_S = 30.0
SAMPLE_S = 1.0
FINISH_S = 120.0
DELIVERED_MIN = 0.9
READERS = 20
STREAMS: dict[str, dict[str, Any]] = {
    "counted": {"segment_events_max": 1_000, "retain_events": 20_000},
    "aged": {"segment_events_max": 2_000, "segment_age_s_max": 10, "retain_age_s": 60},
    "unlimited": {"segment_events_max": 5_000, "durability": "async"},
}
INTERESTS = (Interest(), Interest(mask=4), Interest(color="red"), Interest(mask=3, color="blue"))

SEGMENTS: LiteralString = """
    SELECT s.uuid::text, s.first, COALESCE(s.last, h.sequence), s.tier,
           extract(epoch FROM s.removed_at)::float8
      FROM segments s JOIN streams t ON t.id = s.stream_id JOIN heads h ON h.stream_id = t.id
     WHERE t.name = %s ORDER BY s.first, s.id
"""
USED: LiteralString = """
    SELECT COALESCE(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
     WHERE c.relkind = 'r' AND c.relname ~ '^(events_p|deliveries_p|idempotency_digests_)[0-9]+$'
        OR c.relname = 'keyed_state'
"""


class Samples(NamedTuple):
    """Samples taken while events flow."""

    used_bytes: list[int]
    dropped: list[int]


class Course(NamedTuple):
    """The course of a run."""

    seconds: float
    flows: list[Flow]
    readers: list[Reader]
    samples: Samples


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=600.0, help="events a second, all streams")


async def run(options: argparse.Namespace, data: Path) -> int:
    """Run, judge and print. Return the exit status."""
    dice = random.Random(options.seed)
    hub = HubUnderTest(data, EVENTHUB_QUOTA_BYTES=str(QUOTA_BYTES))
    try:
        await hub.ready()
        summary = await quota(hub, options.seconds, options.rate, dice)
    finally:
        await asyncio.to_thread(hub.stop)
    for name, found in summary.items():
        if name not in ("problems", "used_bytes"):
            print(f"{name}: {found}")
    return report.end(options.json, {"seed": options.seed, **summary}, summary["problems"])


async def quota(
    hub: HubUnderTest, seconds: float, rate: float, dice: random.Random
) -> dict[str, Any]:
    """Emit, read and kill for so long; then let every reader finish, and judge."""
    key = await asyncio.to_thread(hub.create_key, "quota")
    for name, policy in STREAMS.items():
        await _create(hub.url, key, name, policy)
    flows = {
        name: Flow(name, rate / len(STREAMS), random.Random(dice.random())) for name in STREAMS
    }
    readers = _readers(dice)
    samples = Samples([], [])
    began = time.monotonic()
    reading = [asyncio.create_task(one.run([hub.url], key)) for one in readers]
    beside = [
        asyncio.create_task(_kill(hub, random.Random(dice.random()))),
        asyncio.create_task(_sample(hub, samples)),
    ]
    await asyncio.gather(*(flow.run([hub.url], key, seconds) for flow in flows.values()))
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    heads = {name: max(flow.places, default=0) for name, flow in flows.items()}
    for one in readers:
        one.finish(heads[one.journal.stream])
    _, late = await asyncio.wait(reading, timeout=FINISH_S)
    for task in late:
        task.cancel()
    problems = [f"a reader did not finish: {t.get_name()}" for t in late]
    problems += [
        f"{t.exception()!r}" for t in reading if t.done() and not t.cancelled() and t.exception()
    ]
    segments = {name: [Segment(*row) for row in await hub.rows(SEGMENTS, name)] for name in STREAMS}
    verdicts = {
        one.journal.name: judge(
            one.journal, flows[one.journal.stream], segments[one.journal.stream]
        )
        for one in readers
    }
    course = Course(time.monotonic() - began, list(flows.values()), readers, samples)
    return _summary(course, verdicts, problems)


def _readers(dice: random.Random) -> list[Reader]:
    """Create readers for all transports and streams."""
    made = []
    for number in range(READERS):
        transport = list(TRANSPORTS)[number % len(TRANSPORTS)]
        stream = list(STREAMS)[number % len(STREAMS)]
        interest = INTERESTS[number // len(TRANSPORTS) % len(INTERESTS)]
        name = f"{number + 1} {transport} on {stream} {interest.fields()}"
        journal = Journal(name, stream, interest)
        made.append(Reader(journal, TRANSPORTS[transport], random.Random(dice.random())))
    return made


async def _create(url: str, key: str, name: str, policy: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.put(f"{url}/v1/streams/{name}", json=policy) as answer,
    ):
        assert answer.status == 201, await answer.text()


async def _kill(hub: HubUnderTest, dice: random.Random) -> None:
    """Kill a web process with SIGKILL, again and again."""
    while True:
        await asyncio.sleep(KILL_EVERY_S)
        part = dice.choice(("web-1", "web-2"))
        await until(lambda part=part: bool(hub.pids([part])), f"{part} to run", 60)
        send_signal(hub.pids([part]), signal.SIGKILL)


async def _sample(hub: HubUnderTest, samples: Samples) -> None:
    """Sample the size of the tables every second."""
    while True:
        [(used,)] = await hub.rows(USED)
        [(dropped,)] = await hub.rows("SELECT count(*) FROM segments WHERE tier = 'dropped'")
        samples.used_bytes.append(used)
        samples.dropped.append(dropped)
        await asyncio.sleep(SAMPLE_S)


def _summary(course: Course, verdicts: dict[str, Verdict], problems: list[str]) -> dict[str, Any]:
    seconds, flows, readers, samples = course
    expected = sum(verdict.expected for verdict in verdicts.values())
    seen = sum(verdict.seen for verdict in verdicts.values())
    peak = max(samples.used_bytes, default=0)
    problems = [*problems, *(said for flow in flows for said in flow.problems[:3])]
    problems += [f"{name}: {said}" for name, v in verdicts.items() for said in v.problems[:5]]
    if seen < expected * DELIVERED_MIN:
        problems.append(f"only {seen} of {expected} expected events were delivered")
    if peak > QUOTA_BYTES:
        problems.append(f"{peak} bytes were used, beyond the quota of {QUOTA_BYTES}")
    return {
        "seconds": round(seconds, 1),
        "events": sum(len(flow.places) for flow in flows),
        "refused": {flow.stream: flow.refused for flow in flows},
        "segments_dropped": samples.dropped[-1] if samples.dropped else 0,
        "peak_bytes": peak,
        "quota_bytes": QUOTA_BYTES,
        "connections": sum(reader.journal.connections for reader in readers),
        "gaps": sum(len(reader.journal.gaps) for reader in readers),
        "expected": expected,
        "delivered": seen,
        "share": round(seen / max(expected, 1), 4),
        "within_gaps": sum(verdict.missed for verdict in verdicts.values()),
        "used_bytes": samples.used_bytes,
        "problems": problems,
    }
