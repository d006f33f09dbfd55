"""Celery's own commands with the hub's application."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import Celery
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from eventhub.base.broker import RUN_JOBS, SLOTS, threads
from sparkjobs.runs import statements
from tests.forked import Started, run
from tests.integration.callbacks_world import (
    OK,
    SECRET_KEY,
    CallbacksWorld,
    Posted,
    receiver,
    until,
)
from tests.integration.delivery.test_callbacks_tokens import END_WAITING
from tests.integration.delivery.test_callbacks_worker import Broker, delivered, ready

CELERY = (sys.executable, "-m", "celery", "-A", "eventhub")
NAME = "w1@here"
ANSWERED = ("--json", "-d", NAME, "-t", "20")  # one worker is asked: its answer ends the wait
LOCKED = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
LONG = {
    "eventlog.archive": "archive",
    "registrations.build_indexes": "indexes",
    "registrations.purge_versions": "upkeep",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def env(world: CallbacksWorld, broker: Broker, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": world.url,
        "DATABASE_DIRECT_URL": world.url,
        "REDIS_URL": broker.url,
        "EVENTHUB_DATA": str(tmp_path),
        "EVENTHUB_SECRET_KEY": SECRET_KEY,
        "EVENTHUB_CALLBACK_ALLOW": "127.0.0.0/8",
    }


@contextmanager
def running(env: dict[str, str], log: Path, *words: str) -> Iterator[Started]:
    with log.open("ab") as output:
        process = Started([*CELERY, *words], env, output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


async def asked(env: dict[str, str], *words: str) -> dict[str, Any]:
    """Return a command's answer for the only running worker."""
    done = await asyncio.to_thread(run, [*CELERY, *words, *ANSWERED], env)
    assert done.returncode == 0, done.stdout + done.stderr
    answer, _ = json.JSONDecoder().raw_decode(done.stdout)
    [found] = (answer[0] if isinstance(answer, list) else answer).values()
    return found  # type: ignore[no-any-return]


async def test_the_tools_of_celery_list_running_tasks(
    world: CallbacksWorld, env: dict[str, str], broker: Broker, tmp_path: Path
) -> None:
    """Long tasks have threads of their own: deliveries continue meanwhile."""

    async def slowly(_: Posted) -> bytes:
        await asyncio.sleep(1.5)
        return OK

    log = tmp_path / "w1.log"
    task = Celery(broker=f"redis+socket://{broker.socket}").send_task
    with running(env, log, "worker", "-n", NAME), psycopg.connect(world.url) as holder:
        await until(partial(ready, log), 40)
        holder.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        holder.execute(
            "LOCK TABLE archiver, index_builds, registration_versions IN ACCESS EXCLUSIVE MODE"
        )
        for name, queue in LONG.items():
            for _ in range(3):  # those that find no slot free hold no thread
                task(name, queue=queue)
        run_id = statements.request(
            world.connection, statements.RunRequest("audit", {}, "somebody")
        )
        task(RUN_JOBS, queue="jobs")
        await until(lambda: world.one(LOCKED) > len(LONG), 40)
        async with receiver(slowly) as sink:
            endpoints = [world.endpoint(f"{sink.url}/{number}") for number in range(4)]
            sent = world.events(400)
            for endpoint in endpoints:
                world.deliver(sent, endpoint)
            await until(lambda: len(sink.posted) > 8)
            active: dict[str, Any] = {}
            until_s = time.monotonic() + 40
            while "delivery.deliver" not in active:  # between two units none is active
                assert time.monotonic() < until_s, active.keys()
                active = {each["name"]: each for each in await asked(env, "inspect", "active")}
        assert active.keys() == {*LONG, "delivery.deliver", RUN_JOBS}
        assert active[RUN_JOBS]["work"] == {"run": run_id, "job": "audit"}
        assert active["delivery.deliver"]["work"]["requests"] > 0
        assert active["eventlog.archive"]["delivery_info"]["routing_key"] == "archive"


async def test_a_worker_reports_its_state_and_accepts_remote_control(
    env: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "w1.log"
    with running(env, log, "worker", "-n", NAME):
        await until(partial(ready, log), 40)
        stats = await asked(env, "inspect", "stats")
        queues = await asked(env, "inspect", "active_queues")
        tasks = await asked(env, "inspect", "registered")
        status = await asked(env, "status")
        assert stats["pool"]["implementation"] == "celery.concurrency.thread:TaskPool"
        assert stats["pool"]["max-concurrency"] == threads(SLOTS)
        assert {each["name"] for each in queues} == {*SLOTS, f"{NAME}.dq2"}
        assert {"delivery.deliver", "jobs.run", "eventlog.archive"} <= {*tasks}
        assert status == {"ok": "pong"}
        await asked(env, "control", "cancel_consumer", "jobs")
        names = {each["name"] for each in await asked(env, "inspect", "active_queues")}
        assert names == {*SLOTS, f"{NAME}.dq2"} - {"jobs"}


async def test_a_second_worker_of_the_same_name_is_reported(
    env: dict[str, str], tmp_path: Path
) -> None:
    """They would take units from each other, and `inspect` shows only one of the two workers."""
    first, second = tmp_path / "w1.log", tmp_path / "w2.log"
    with running(env, first, "worker", "-n", NAME) as process:
        await until(partial(ready, first), 40)
        with running(env, second, "worker", "-n", NAME):
            await until(lambda: "node_name_taken" in second.read_text(), 40)
        named = f"by_process=[{process.pid}]"
    (line,) = [line for line in second.read_text().splitlines() if "node_name_taken" in line]
    assert named in line
    assert "-n NAME@%h" in line


async def test_arguments_of_a_newer_release_are_left_out(
    world: CallbacksWorld, env: dict[str, str], broker: Broker, tmp_path: Path
) -> None:
    """Two releases run side by side. The task raised TypeError, and the run of the job was
    never requested; the message is retried unchanged when the worker has no free slot."""
    log = tmp_path / "w1.log"
    task = Celery(broker=f"redis+socket://{broker.socket}").send_task
    with running(env, log, "worker", "-n", NAME):
        with psycopg.connect(world.url) as holder:
            holder.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            holder.execute("LOCK TABLE registration_versions IN ACCESS EXCLUSIVE MODE")
            for _ in range(SLOTS["upkeep"]):
                task("registrations.purge_versions", queue="upkeep")
            await until(lambda: world.one(LOCKED) == SLOTS["upkeep"], 40)
            task("jobs.ask", ["audit", "first"], {"since": "yesterday"}, queue="upkeep")
            await until(lambda: "task_arguments_ignored" in log.read_text())
        await until(lambda: world.one("SELECT count(*) FROM job_runs WHERE job = 'audit'") == 1)
    assert "names=['since']" in log.read_text()
    assert "yesterday" not in log.read_text()


@pytest.mark.parametrize("by", ["broker", "worker"])
async def test_a_unit_that_lost_the_database_is_tried_again(
    world: CallbacksWorld, env: dict[str, str], tmp_path: Path, by: str
) -> None:
    """Celery retries by the task's policy; without a broker the worker itself retries."""
    (metrics := tmp_path / "metrics").mkdir()
    env = {**env, "PROMETHEUS_MULTIPROC_DIR": str(metrics)}
    log = tmp_path / "w1.log"
    with running(env if by == "broker" else {**env, "REDIS_URL": ""}, log, "worker"):
        await until(partial(ready, log), 40)
        async with receiver() as sink:
            endpoint = world.endpoint(sink.url)
            for number in range(1, 6):  # of a busy machine a message may come too late
                sent = world.events(3)
                with psycopg.connect(world.url) as holder:
                    holder.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
                    world.deliver(sent, endpoint)
                    await until(lambda: world.sql(END_WAITING) == [(True,)])
                await until(partial(delivered, world, endpoint, 3 * number))
                if counted(metrics, "unit_retries_total"):
                    break
                if by == "worker" and counted(metrics, "units_total", by="worker") >= 2:
                    break
        assert len(sink.posted) == len(set(sink.ids()))
        if by == "broker":
            assert counted(metrics, "unit_retries_total") == 1
            assert counted(metrics, "units_total", by="broker") >= 2
        else:
            assert counted(metrics, "unit_retries_total") == 0
            assert counted(metrics, "units_total", by="worker") >= 2
            assert counted(metrics, "units_total", by="broker") == 0


def counted(folder: Path, name: str, **labels: str) -> float:
    """Return a counter of callbacks, as the hub's processes wrote it."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))
    return registry.get_sample_value(f"eventhub_callback_{name}", labels) or 0.0


async def test_a_worker_of_other_queues_delivers_nothing(
    world: CallbacksWorld, env: dict[str, str], tmp_path: Path
) -> None:
    other, own = tmp_path / "jobs.log", tmp_path / "deliveries.log"
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        with running(env, other, "worker", "-n", "other@here", "-Q", "jobs,indexes"):
            await until(partial(ready, other), 40)
            world.deliver(world.events(1), endpoint)
            assert not world.one("SELECT count(*) FROM callback_workers")
            with running(env, own, "worker", "-n", "own@here", "-Q", "deliveries"):
                await until(lambda: world.states(endpoint) == ["delivered"])


async def test_beat_runs_and_needs_redis(
    world: CallbacksWorld, env: dict[str, str], tmp_path: Path
) -> None:
    words = ("beat", "-s", str(tmp_path / "beat"), "--pidfile", "")
    with running(env, tmp_path / "beat.log", *words) as process:
        await until(lambda: world.one("SELECT count(*) FROM heartbeats WHERE part = 'beat'") == 1)
        assert process.poll() is None
    with running({**env, "REDIS_URL": ""}, tmp_path / "alone.log", *words) as process:
        await until(lambda: process.poll() is not None)
        assert process.poll() == os.EX_CONFIG
    assert "REDIS_URL is not set" in (tmp_path / "alone.log").read_text()
