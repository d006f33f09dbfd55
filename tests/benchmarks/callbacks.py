"""`callbacks`: stored deliveries drained to a healthy sink, against one Celery task per delivery;
ordered by key and in batches, against parallel ones; and how much dead, hanging and slow endpoints
delay the healthy ones.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eventhub.supervisor.hub import HOME, celery_worker
from tests.benchmarks import deliveries
from tests.benchmarks.deliveries import Connection
from tests.benchmarks.load.start import LoadFailed
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.workers import Sink, sink, workers
from tests.benchmarks.world import World

ENDPOINTS = 8
EXPECTED_PER_S = 10_000  # so many deliveries last about as long as a reading should
EXPECTED_BASELINE_PER_S = 500
STREAM = "callbacks"
POLL_S = 0.02
END_S = 60.0
LOG_SHOWN = 3_000
BASELINE_PROCESSES = 4
HEALTHY = 20
BACKLOG = 300  # deliveries due to each sick endpoint at the beginning
FEED_INTERVAL_S = 0.05
KEYS = 10_000  # lanes of all endpoints together
BATCH = 100  # events in a request
CROWD, DEAD_SHARE = 1_000, 0.1  # endpoints with deliveries due, and how many of them are dead
CROWD_WARMUP = 3
NOBODY = "http://127.0.0.1:9/"  # refuses: nothing listens there


class Drain(NamedTuple):
    """How deliveries are drained: by so many workers, ordered by so many keys (0: parallel), in
    batches of so many events, to so many endpoints.
    """

    workers: int
    keys: int = 0
    batch: int | None = None
    endpoints: int = ENDPOINTS


def cases(world: World, pace: Pace) -> list[Case]:
    baseline = {"celery_task_each": _celery(world, pace)}
    parallel = {"parallel": _drained(world, pace, Drain(2))}
    return [
        Case(
            name="callbacks_1",
            unit="deliveries/s",
            product=_drained(world, pace, Drain(1)),
            baselines=baseline,
        ),
        Case(
            name="callbacks_2",
            unit="deliveries/s",
            product=_drained(world, pace, Drain(2)),
            baselines=baseline,
            floor=10.0,
            goal=19.0,
        ),
        Case(
            name="callbacks_endpoint",
            unit="deliveries/s",
            product=_drained(world, pace, Drain(2, endpoints=1)),
            baselines=parallel,
            floor=0.5,
            goal=0.8,
        ),
        Case(
            name="callbacks_keys",
            unit="deliveries/s",
            product=_drained(world, pace, Drain(2, keys=KEYS)),
            baselines=parallel,
            floor=0.5,
            goal=0.8,
        ),
        Case(
            name="callbacks_batch",
            unit="deliveries/s",
            product=_drained(world, pace, Drain(2, batch=BATCH)),
            baselines=parallel,
            floor=5.0,
            goal=10.0,
        ),
        Case(
            name="callbacks_dead",
            unit="deliveries/s",
            product=_crowded(world, pace, dead=DEAD_SHARE),
            baselines={"none_dead": _crowded(world, pace, dead=0.0)},
            floor=0.8,
            goal=0.95,
        ),
        Case(
            name="callbacks_sick",
            unit="ms",
            product=_beside(world, pace, sick=True),
            baselines={"healthy_alone": _beside(world, pace, sick=False)},
            floor=2.0,
            lower_is_better=True,
        ),
    ]


def _drained(world: World, pace: Pace, drain: Drain) -> Measure:
    """Measure from the first request to the last result written."""

    def measure() -> Reading:
        expected = int(pace.seconds * EXPECTED_PER_S * (drain.batch or 1) ** 0.25)
        argvs = [celery_worker(f"bench-{number}@%h") for number in range(drain.workers)]
        log = world.data / "workers.log"
        with sink() as receivers, workers(argvs, _env(world), log, forks=world.forks):
            return _timed(world, receivers, expected, log, drain)

    return measure


def _timed(world: World, receivers: Sink, expected: int, log: Path, drain: Drain) -> Reading:
    with deliveries.connect(world.url) as connection:
        urls = [receivers.url("healthy", str(number)) for number in range(drain.endpoints)]
        key, ordered = world.env["EVENTHUB_SECRET_KEY"], drain.keys > 0
        endpoints = deliveries.make_endpoints(
            connection, key, urls, ordered=ordered, batch=drain.batch
        )
        stream_id = world.streams[STREAM]
        sequences = deliveries.append(connection, stream_id, expected // drain.endpoints)
        keys = -(-drain.keys // drain.endpoints)
        deliveries.insert_pending(connection, stream_id, sequences, endpoints, keys)
        connection.execute("VACUUM ANALYZE deliveries, lanes")
        receivers.took()
        before = deliveries.work(connection)
        deliveries.enable(connection, endpoints)
        ended_s = _await_end(connection, endpoints, log)
        done = deliveries.work(connection)
        deliveries.enable(connection, endpoints, on=False)
    count = len(sequences) * drain.endpoints
    read = _reading(receivers, ended_s, count, drain.batch or 1)
    per_delivery = {
        "wal_bytes_each": (done.wal_bytes - before.wal_bytes) / count,
        "commits_per_1000": 1_000 * (done.transactions - before.transactions) / count,
    }
    return read._replace(also={**read.also, **per_delivery})


def _crowded(world: World, pace: Pace, *, dead: float) -> Measure:
    """Measure deliveries to the healthy endpoints while a million is due to a thousand endpoints,
    of which a share refuses connections.
    """

    def measure() -> Reading:
        log = world.data / "workers.log"
        argvs = [celery_worker(f"bench-{number}@%h") for number in range(2)]
        with sink() as receivers, workers(argvs, _env(world), log, forks=world.forks):
            return _of_crowd(world, receivers, pace, dead)

    return measure


def _of_crowd(world: World, receivers: Sink, pace: Pace, dead: float) -> Reading:
    healthy = round(CROWD * (1 - dead))
    due = pace.replayed
    with deliveries.connect(world.url) as connection:
        urls = [receivers.url("healthy", str(number)) for number in range(healthy)]
        urls += [NOBODY] * (CROWD - healthy)
        key, stream_id = world.env["EVENTHUB_SECRET_KEY"], world.streams[STREAM]
        endpoints = deliveries.make_endpoints(connection, key, urls)
        sequences = deliveries.append(connection, stream_id, due // CROWD)
        deliveries.insert_pending(connection, stream_id, sequences, endpoints)
        connection.execute("VACUUM ANALYZE deliveries")
        receivers.took()
        deliveries.enable(connection, endpoints)
        time.sleep(pace.warmup_s * CROWD_WARMUP)  # the dead ones are known then
        receivers.took()
        time.sleep(pace.seconds)
        took = receivers.took()
        deliveries.enable(connection, endpoints, on=False)
        connection.execute("TRUNCATE deliveries, attempts")
        connection.execute("DELETE FROM circuits")
    return Reading(took.requests / pace.seconds, {"endpoints_dead": float(CROWD - healthy)})


def _await_end(connection: Connection, endpoints: Sequence[int], log: Path) -> float:
    """Return when all deliveries were finished, on the monotonic clock. Raise LoadFailed, with the
    end of the workers' log.
    """
    until_s = time.monotonic() + END_S
    while deliveries.any_pending(connection, endpoints):
        if time.monotonic() > until_s:
            left = deliveries.pending(connection, endpoints)
            raise LoadFailed(f"{left} deliveries are left over:\n{log.read_text()[-LOG_SHOWN:]}")
        time.sleep(POLL_S)
    return time.monotonic()


def _reading(receivers: Sink, ended_s: float, expected: int, batch: int = 1) -> Reading:
    took = receivers.took()
    posted = {"posted_per_s": took.requests / max(took.last_s - took.first_s, 1e-9)}
    if batch == 1:
        posted["posted_twice"] = float(took.requests - expected)
    else:
        posted["events_per_request"] = expected / max(took.requests, 1)
    return Reading(expected / (ended_s - took.first_s), posted)


def _celery(world: World, pace: Pace) -> Measure:
    """Measure Celery with a queue that was filled before the worker starts, so enqueueing costs it
    nothing.
    """
    argv = ("-m", "celery", "-A", "tests.benchmarks.baselines.celery_tasks", "worker",
            "-c", str(BASELINE_PROCESSES), "-l", "INFO",
            "--without-gossip", "--without-mingle", "--without-heartbeat")  # fmt: skip

    def measure() -> Reading:
        expected = max(ENDPOINTS, int(pace.seconds * EXPECTED_BASELINE_PER_S))
        log = world.data / "celery.log"
        with sink() as receivers, deliveries.connect(world.url) as connection:
            urls = [receivers.url("healthy", str(number)) for number in range(ENDPOINTS)]
            key = world.env["EVENTHUB_SECRET_KEY"]
            endpoints = deliveries.make_endpoints(connection, key, urls)
            stream_id = world.streams[STREAM]
            sequences = deliveries.append(connection, stream_id, expected // ENDPOINTS)
            deliveries.insert_pending(connection, stream_id, sequences, endpoints)
            _enqueue(world, deliveries.keys(connection, endpoints))
            with workers([argv], world.env, log, wait=False):
                ended_s = _await_end(connection, endpoints, log)
            return _reading(receivers, ended_s, len(sequences) * ENDPOINTS)

    return measure


def _enqueue(world: World, keys: Sequence[tuple[int, ...]]) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.enqueue"],
        input="\n".join(json.dumps(key) for key in keys),
        cwd=HOME,
        env=world.env,
        text=True,
        check=True,
    )


def _beside(world: World, pace: Pace, *, sick: bool) -> Measure:
    """Measure how long deliveries to twenty healthy endpoints take from their row to their response
    (p99), alone or together with an endpoint that refuses, one that hangs and one that answers a
    byte a second, each with hundreds of deliveries due.
    """

    def measure() -> Reading:
        argv = celery_worker("bench-sick@%h")
        log = world.data / "workers.log"
        with sink() as receivers, workers([argv], _env(world), log, forks=world.forks):
            return _fed(world, receivers, pace, log, sick=sick)

    return measure


def _fed(world: World, receivers: Sink, pace: Pace, log: Path, *, sick: bool) -> Reading:
    stream_id, key = world.streams[STREAM], world.env["EVENTHUB_SECRET_KEY"]
    with deliveries.connect(world.url) as connection:
        urls = [receivers.url("healthy", str(number)) for number in range(HEALTHY)]
        healthy = deliveries.make_endpoints(connection, key, urls)
        bad: list[int] = []
        if sick:
            urls = [receivers.url("hanging"), receivers.url("dripping"), NOBODY]
            bad = deliveries.make_endpoints(connection, key, urls)
            sequences = deliveries.append(connection, stream_id, BACKLOG)
            deliveries.insert_pending(connection, stream_id, sequences, bad)
        deliveries.enable(connection, [*healthy, *bad])
        feed = [stream_id, [*healthy, *bad], pace.seconds * 2 + 1.0, FEED_INTERVAL_S]
        world.run_child("tests.benchmarks.feed", json.dumps(feed))
        _await_end(connection, healthy, log)
        deliveries.enable(connection, [*healthy, *bad], on=False)
        return Reading(*deliveries.latencies_ms(connection, healthy))


def _env(world: World) -> dict[str, str]:
    return {**world.env, "EVENTHUB_CALLBACK_ALLOW": "127.0.0.0/8"}
