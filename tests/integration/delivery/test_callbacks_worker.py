"""The drain in real Celery workers: without a broker, with a lost one, killed in the middle."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

import psycopg
import pytest
import redis
from celery import Celery
from psycopg.conninfo import make_conninfo

from eventhub.base import limits
from eventhub.supervisor.hub import celery_worker
from eventhub.supervisor.programs import redis_server
from tests.busy import stretched
from tests.forked import Started
from tests.integration.callbacks_world import (
    OK,
    SECRET_KEY,
    CallbacksWorld,
    Posted,
    answer,
    draining,
    receiver,
    until,
)

OLD_LANE = "INSERT INTO lanes (endpoint_id, stream_id, expires_at) VALUES (-1, -1, '2020-01-01')"


class Broker:
    """A Redis that a test may kill and start again empty."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "r.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self.socket), "--save", ""]
        self._process = subprocess.Popen(
            [str(redis_server()), *options], stdout=subprocess.DEVNULL, cwd=self.socket.parent
        )
        until_s = time.monotonic() + 30
        while True:
            try:
                self.client().ping()
                return
            except redis.RedisError:
                assert time.monotonic() < until_s
                time.sleep(0.02)

    def client(self) -> "redis.Redis":
        return redis.Redis(unix_socket_path=str(self.socket))

    def flush(self) -> None:
        self.client().flushall()

    def stop_answering(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def worker(world: CallbacksWorld, redis_url: str, log: Path, **more: str) -> Iterator[Started]:
    env = {
        **os.environ,
        "DATABASE_URL": world.url,
        "DATABASE_DIRECT_URL": world.url,
        "REDIS_URL": redis_url,
        "EVENTHUB_SECRET_KEY": SECRET_KEY,
        "EVENTHUB_CALLBACK_ALLOW": "127.0.0.0/8",
        **more,
    }
    with log.open("ab") as output:
        process = Started([sys.executable, *celery_worker(f"{log.stem}@%h")], env, output)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


async def test_a_worker_killed_between_a_batch_and_its_result_loses_nothing(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    """The receiver has the events of the first requests, and nothing says so in the database."""
    answering = asyncio.Event()

    async def held(_: Posted) -> bytes:
        await answering.wait()
        return OK

    def received() -> list[str]:
        return [event["id"] for each in sink.posted for event in json.loads(each.body)["batch"]]

    async with receiver(held) as sink:
        endpoint = world.endpoint(sink.url, batch_events_max=25)
        world.deliver(world.events(100), endpoint)
        with worker(world, "", tmp_path / "b1.log") as process:
            await until(lambda: len(received()) == 100)  # none is in a socket's buffer
            process.kill()
            process.wait()
        killed_s, before = time.monotonic(), set(received())
        assert world.count("pending") == 100
        answering.set()
        with worker(world, "", tmp_path / "b2.log"):
            await until(lambda: world.count("delivered") == 100)
        assert time.monotonic() - killed_s < 2 / 3 * limits.CALLBACK_CLAIM_S
    counts = Counter(received())
    assert len(counts) == 100
    assert {id for id, count in counts.items() if count > 1} == before  # with the same ids
    attempts = world.sql("SELECT sequences FROM attempts WHERE outcome = 'delivered'")
    assert sorted(n for row in attempts for n in row[0]) == [*range(1, 101)]


@pytest.mark.slow
async def test_a_worker_killed_while_it_posts_loses_nothing_and_repeats_with_the_same_ids(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    """Its claims are due some seconds after its last heartbeat, not when they expire. Nor does the
    next worker lose anything, whose Redis comes and goes, and which is stopped.
    """

    async def slowly(_: Posted) -> bytes:
        await asyncio.sleep(0.2)
        return OK

    redis_server = Broker(tmp_path)
    async with receiver(slowly) as sink:
        endpoint = world.endpoint(sink.url)
        sent = world.events(60)
        world.deliver(sent, endpoint)
        lane = world.endpoint(sink.url.replace("hook", "lane"), ordered=True)
        world.deliver(world.events(6), lane)
        with worker(world, "", tmp_path / "w1.log") as process:
            await until(lambda: world.count("delivered") > 0 and len(sink.posted) > 8)
            process.kill()
            process.wait()
            killed_s = time.monotonic()
        left = world.count("pending")
        assert left > 0
        try:
            with worker(world, redis_server.url, tmp_path / "w2.log") as process:
                await until(lambda: world.count("delivered") == 60 + 6, 40)
                assert time.monotonic() - killed_s < 2 / 3 * limits.CALLBACK_CLAIM_S
                await losing_redis_with_everything_in_it_loses_nothing(world, redis_server)
                assert process.poll() is None
                await what_a_stopped_one_did_not_finish_is_given_back(world, process)
        finally:
            redis_server.kill()
    order = [int(id.split("_")[2]) for posted, id in zip(sink.posted, sink.ids(), strict=True)
             if posted.path == "/lane"]  # fmt: skip
    assert list(dict.fromkeys(order)) == [1, 2, 3, 4, 5, 6]
    steps = [after - before for before, after in pairwise(order)]
    assert sum(step != 1 for step in steps) <= 1  # from the oldest without a written result
    times = Counter(sink.ids())
    assert len(times) == 60 + 6
    assert 1 < max(times.values()) <= 2  # only deliveries under way came twice
    assert sum(times.values()) - 66 <= left


async def test_a_suspended_worker_overwrites_nothing(world: CallbacksWorld, tmp_path: Path) -> None:
    """The worker resumes in the middle of a request, with further claims of the lane."""
    gate = asyncio.Event()

    async def first_waits(posted: Posted) -> bytes:
        if len(sink.posted) == 1:
            await gate.wait()
            return answer("500 Oops")
        return OK

    async with receiver(first_waits) as sink:
        endpoint = world.endpoint(sink.url, ordered=True)
        world.deliver(world.events(5), endpoint)
        with worker(world, "", tmp_path / "w1.log") as process:
            await until(lambda: len(sink.posted) == 1)
            process.send_signal(signal.SIGSTOP)
            try:
                async with draining(world):
                    await until(lambda: world.states(endpoint) == ["delivered"] * 5)
            finally:
                process.send_signal(signal.SIGCONT)
            gate.set()
            other = world.endpoint(sink.url)
            world.deliver(
                world.events(1), other
            )  # it posts again, so its earlier results are written or refused
            await until(lambda: world.states(other) == ["delivered"])
    assert sink.sequences() == [1, 1, 2, 3, 4, 5, 1]
    assert world.outcomes(endpoint) == [(1, "delivered", 204)] * 5


async def test_a_redis_that_returns_errors_ends_no_worker(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    """The story: a Redis without memory ended the workers again and again, and callbacks stopped
    for 40 s. Tasks continue when it accepts messages again.
    """
    redis_server, log = Broker(tmp_path), tmp_path / "w1.log"
    redis_server.start()
    client = redis_server.client()
    client.config_set("maxmemory", "1")
    try:
        with worker(world, redis_server.url, log) as process:
            async with receiver() as sink:
                endpoint = world.endpoint(sink.url)
                world.deliver(world.events(3), endpoint)
                await until(lambda: "tasks_wait_for_redis" in log.read_text(), 40)
                await until(lambda: world.states(endpoint) == ["delivered"] * 3)
            client.config_set("maxmemory", "0")
            world.sql(OLD_LANE)
            send = Celery(broker=f"redis+socket://{redis_server.socket}").send_task
            send("delivery.delete_leftovers", queue="upkeep")
            await until(
                lambda: not world.one("SELECT count(*) FROM lanes WHERE stream_id = -1"), 20
            )
            assert process.poll() is None
    finally:
        redis_server.kill()


async def losing_redis_with_everything_in_it_loses_nothing(
    world: CallbacksWorld, redis_server: Broker
) -> None:
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url)
        sent = world.events(5)
        world.deliver(sent, endpoint)  # Redis is not running yet
        await until(lambda: world.states(endpoint) == ["delivered"] * 5, 40)
        for number, loss in enumerate(
            (redis_server.start, redis_server.flush, redis_server.kill, redis_server.start), 2
        ):
            loss()
            world.deliver(world.events(5, stream_id=sent.stream_id), endpoint)
            await until(partial(delivered, world, endpoint, 5 * number), 40)
        assert len(set(sink.ids())) == len(sink.posted) == 25


def delivered(world: CallbacksWorld, endpoint: int, count: int) -> bool:
    return world.states(endpoint) == ["delivered"] * count


async def what_a_stopped_one_did_not_finish_is_given_back(
    world: CallbacksWorld, process: Started
) -> None:
    async def never(_: Posted) -> bytes:
        await asyncio.sleep(60)
        return OK

    async with receiver(never) as sink:
        endpoint = world.endpoint(sink.url)
        world.deliver(world.events(4), endpoint)
        await until(lambda: len(sink.posted) == 4)
        began_s = time.monotonic()
        process.terminate()
        await until(lambda: process.poll() is not None)
        assert time.monotonic() - began_s < limits.CALLBACK_STOP_S_MAX + stretched(5.0)
    given_back = (
        "SELECT count(*) FROM deliveries WHERE claim IS NULL AND next_attempt_at <= now()"
        " AND attempts = 0 AND endpoint_id = %s"
    )
    assert world.sql(given_back, endpoint) == [(4,)]


@pytest.mark.parametrize("has_redis", [True, False])
async def test_a_notification_wakes_an_idle_worker_before_its_next_scan(
    world: CallbacksWorld, tmp_path: Path, has_redis: bool
) -> None:
    """With Redis the unit is a task from the worker's own queue; without it the worker runs the
    unit.
    """
    redis_server = Broker(tmp_path)
    redis_server.start()
    try:
        async with receiver() as sink:
            endpoint = world.endpoint(sink.url)
            stream = world.events(1)
            names = (tmp_path / "w1.log", tmp_path / "w2.log")
            url = redis_server.url if has_redis else ""
            with ExitStack() as stack:
                for name in names:
                    stack.enter_context(worker(world, url, name))
                for name in names:
                    await until(partial(ready, name), 40)
                took = []
                for number in range(1, 12):
                    began_s = time.monotonic()
                    world.deliver(world.events(1, stream_id=stream.stream_id), endpoint)
                    await until(lambda partition=number: len(sink.posted) >= partition, 40)  # type: ignore[misc]
                    took.append(time.monotonic() - began_s)
                    await asyncio.sleep(0.15 * (number % 3))
        assert median(took) < limits.CALLBACK_SCAN_INTERVAL_S / 4, took
    finally:
        redis_server.kill()


async def test_archiving_and_index_builds_leave_a_thread_for_short_tasks(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    """Both may take hours; the hourly tasks of a worker must not wait for them."""
    redis_server, log = Broker(tmp_path), tmp_path / "w1.log"
    redis_server.start()
    task = Celery(broker=f"redis+socket://{redis_server.socket}").send_task
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND application_name = ANY (%s)"
        " AND datname = current_database()"
    )
    jobs = ["eventhub archiver", "eventhub index builder"]
    try:
        with (
            worker(world, redis_server.url, log, EVENTHUB_DATA=str(tmp_path)),
            psycopg.connect(world.url) as holder,
        ):
            await until(partial(ready, log), 40)
            holder.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            holder.execute("LOCK TABLE archiver, index_builds IN ACCESS EXCLUSIVE MODE")
            for name, queue in (
                ("eventlog.archive", "archive"),
                ("registrations.build_indexes", "indexes"),
            ):
                task(name, queue=queue)
            await until(lambda: world.one(waiting, jobs) == 2, 40)
            world.sql(OLD_LANE)
            task("delivery.delete_leftovers", queue="upkeep")
            await until(lambda: not world.one("SELECT count(*) FROM lanes"))
    finally:
        redis_server.kill()


async def test_the_log_message_has_the_reason_for_an_unavailable_database(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    """For a wrong database name a worker logged DatabaseUnavailable, and nothing else."""
    log, url = tmp_path / "w1.log", make_conninfo(world.url, dbname="nosuchdb")
    with worker(world, "", log, DATABASE_URL=url, DATABASE_DIRECT_URL=url):
        await until(lambda: "callbacks_wait_for_database" in log.read_text(), 40)
    assert 'database "nosuchdb" does not exist' in log.read_text()


def ready(log: Path) -> bool:
    return "ready." in log.read_text()
