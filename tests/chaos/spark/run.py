"""The command `python -m tests.chaos spark`: all jobs on a master and two workers; then, for each
trial, one process of a run is killed at a random moment.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import aiohttp

from sparkjobs.result import read_result
from sparkjobs.runs.folders import folder_of
from tests.chaos import report
from tests.chaos.callbacks.receivers import ask
from tests.chaos.circle.flow import Flow
from tests.chaos.hub import Crew, HubUnderTest
from tests.chaos.spark import sight, victims
from tests.chaos.until import until_true
from tests.cluster import Cluster, standalone
from tests.integration.up_process import HOME

STREAM = "orders"
JOBS = {
    "match_index": ("zone=default", f"stream={STREAM}", "engine=spark"),
    "backtest": ("zone=default", f"stream={STREAM}", "filter=(> load 50)", "engine=spark"),
    "retention": ("zone=default",),
    "audit": ("zone=default",),
}
SEGMENTS = 4
BULK = 500  # registrations made at once
PATIENCE_S = 300.0
RUN_S_MAX = 600.0
LEASE_S_MAX = 60.0  # until the lease of a run whose runner is gone has run out
UNDER_WAY = "Another run of the job is under way"
ARCHIVED: LiteralString = "SELECT count(*) FROM segments WHERE archive_path IS NOT NULL"
STREAM_ID: LiteralString = "SELECT id FROM streams WHERE name = %s"
LAST: LiteralString = "SELECT id, state FROM job_runs WHERE job = %s ORDER BY id DESC LIMIT 1"


class Scene(NamedTuple):
    """A hub with a stream that has events and registrations, and a cluster."""

    hub: HubUnderTest
    cluster: Cluster
    stream_id: int


class Killed(NamedTuple):
    """A run of which one process was killed."""

    job: str
    after_s: float
    victim: str  # "": it was over before
    state: str
    next_s: float  # how long the next run took
    problems: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=20, help="processes that are killed")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--registrations", type=int, default=5_000)
    parser.add_argument("--only", action="append", default=[], choices=sorted(JOBS))


async def run(options: argparse.Namespace, data: Path) -> int:
    """Return the exit status."""
    dice = random.Random(options.seed)
    print(f"seed {options.seed}, data {data}", flush=True)
    async with scene_of(data, options) as scene:
        rounds, problems = await asyncio.to_thread(trials, scene, options, dice)
    counted = Counter(found.victim or "nobody" for found in rounds)
    print(f"killed: {dict(counted)}; states: {dict(Counter(found.state for found in rounds))}")
    problems += [problem for found in rounds for problem in found.problems]
    summary = {"seed": options.seed, "rounds": [found._asdict() for found in rounds]}
    return report.end(options.json, summary, problems)


def trials(
    scene: Scene, options: argparse.Namespace, dice: random.Random
) -> tuple[list[Killed], list[str]]:
    """Run each job undisturbed, then trials until enough processes were killed. Return them, and
    every partial artefact that was visible meanwhile.
    """
    jobs = options.only or list(JOBS)
    whole: dict[str, tuple[dict[str, Any], float]] = {}
    rounds: list[Killed] = []
    with sight.watched(scene.hub.data, scene.stream_id) as seen:
        for job in jobs:
            began = time.monotonic()
            found = complete(scene, job)
            whole[job] = found, time.monotonic() - began
            print(f"{job}: {whole[job][1]:.1f} s undisturbed", flush=True)
        while sum(bool(found.victim) for found in rounds) < options.times:
            job = dice.choice(jobs)
            killed = trial(scene, job, whole[job], random.Random(dice.random()))
            rounds.append(killed)
            expected, usual_s = whole[job]
            whole[job] = expected, min(usual_s, killed.next_s)  # those of before were slower
            victim = f"{killed.victim or 'nobody':<9} {killed.after_s:5.1f} s"
            came_of = (
                f"{killed.state:<12} next {killed.next_s:5.1f} s  {report.verdict(killed.problems)}"
            )
            print(f"{len(rounds):>3}  {job:<12} {victim}  {came_of}", flush=True)
    return rounds, seen


def trial(
    scene: Scene, job: str, whole: tuple[dict[str, Any], float], dice: random.Random
) -> Killed:
    """Kill one process of a run; then the next run must complete with the results of the
    undisturbed one.
    """
    expected, usual_s = whole
    after_s = dice.uniform(0, usual_s)
    process = started(scene, job)
    victim = victims.kill_one(process, scene.cluster.pids, after_s, dice)
    process.communicate(timeout=RUN_S_MAX)
    run, state = last(scene, job)
    problems = []
    if state == "completed" and outcome(scene, job, run) != expected:
        problems.append(f"{job}: a run of which {victim} was killed has another result")
    began = time.monotonic()
    found = complete(scene, job)
    if found != expected:
        problems.append(f"{job}: the run after {victim} was killed has another result: {found}")
    took_s = time.monotonic() - began
    folder = folder_of(scene.hub.data, job, run)
    if victims.drivers(str(folder.spec)):
        problems.append(f"{job}: the driver goes on after {victim} was killed")
    if state != "completed" and folder.result.exists():
        problems.append(f"{job}: a run that is {state} has a result")
    problems += [f"{path} is left" for path in sight.leftovers(scene.hub.data, job)]
    return Killed(job, after_s, victim, state, took_s, problems)


def complete(scene: Scene, job: str) -> dict[str, Any]:
    """Run a job undisturbed. It starts when the lease of the previous run has expired."""
    until_s = time.monotonic() + LEASE_S_MAX
    while True:
        process = started(scene, job)
        said, _ = process.communicate(timeout=RUN_S_MAX)
        if UNDER_WAY not in said or time.monotonic() > until_s:
            break
    run, state = last(scene, job)
    if process.returncode or state != "completed":
        raise RuntimeError(f"{job} is {state}: {said[-3_000:]}")
    return outcome(scene, job, run)


def outcome(scene: Scene, job: str, run: int) -> dict[str, Any]:
    folder = folder_of(scene.hub.data, job, run).result
    found = sight.fingerprint(read_result(folder), folder)
    if job == "match_index":
        found["shards"] = sight.postings(scene.hub.data, scene.stream_id)
    return found


def started(scene: Scene, job: str) -> subprocess.Popen[str]:
    given = [word for param in JOBS[job] for word in ("--param", param)]
    conf = {"SPARK_MASTER": scene.cluster.master, "EVENTHUB_SPARK_CONF": str(scene.cluster.conf)}
    return subprocess.Popen(
        [sys.executable, str(HOME / "manage.py"), "sparkjob", job, *given],
        env={**scene.hub.env, **conf},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def last(scene: Scene, job: str) -> tuple[int, str]:
    """Return the number and state of the newest run."""
    with scene.hub.connect_plainly() as connection:
        [row] = connection.execute(LAST, (job,)).fetchall()
    return int(row[0]), str(row[1])


@asynccontextmanager
async def scene_of(data: Path, options: argparse.Namespace) -> AsyncIterator[Scene]:
    """Open a scene; stop everything at the end."""
    async with AsyncExitStack() as stack:
        await asyncio.to_thread(data.mkdir, parents=True, exist_ok=True)
        cluster = stack.enter_context(standalone(data / "cluster"))
        hub = HubUnderTest(data / "hub", Crew(web=1, workers=1))
        stack.callback(hub.stop)
        await hub.ready()
        key = await asyncio.to_thread(hub.create_key, "spark")
        headers = {"Authorization": f"Bearer {key}"}
        http = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        policy = {
            "segment_events_max": options.events // SEGMENTS,
            "archive": True,
            "matching": "index",
        }
        await ask(http, "PUT", f"{hub.url}/v1/streams/{STREAM}", policy)
        await register(http, hub.url, options.registrations)
        await Flow(hub.url, key, STREAM).emit(0, options.events)

        async def is_archived() -> bool:
            await asyncio.sleep(1)
            [(archived,)] = await hub.rows(ARCHIVED)
            return bool(archived >= SEGMENTS)

        await until_true(is_archived, "all segments to be archived", PATIENCE_S)
        [(stream_id,)] = await hub.rows(STREAM_ID, STREAM)
        yield Scene(hub, cluster, stream_id)


async def register(http: aiohttp.ClientSession, url: str, count: int) -> None:
    """Create registrations; without a forwarder nothing is delivered."""
    made = await ask(http, "POST", f"{url}/v1/endpoints", {"url": "https://example.org/hook"})
    for first in range(0, count, BULK):
        requested = [
            {"streams": [STREAM], "attributes": {"device": f"d{at}"}, "endpoint": made["id"]}
            for at in range(first, min(first + BULK, count))
        ]
        await ask(http, "POST", f"{url}/v1/registrations", requested)
