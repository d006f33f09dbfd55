"""`emit`: events over HTTP with a key, checked and durable, against a Django view and raw COPY."""

import time
from collections.abc import Callable
from functools import cache

import psutil
import psycopg

from eventhub.base import limits
from tests.benchmarks import events, nats
from tests.benchmarks.baselines.rows import pgbench_insert, raw_copy
from tests.benchmarks.load.jobs import HttpJob, NatsPublishJob, Target
from tests.benchmarks.load.start import run_load
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

BATCH = 100
CONNECTIONS = 64
PROCESSES = (2, 4)
Find = Callable[[], Target]


def cases(world: World, pace: Pace) -> list[Case]:
    return [
        Case(
            name="emit_64",
            unit="requests/s",
            product=posted(world, pace, lambda: world.emit_target("emit"), 64),
            baselines={
                "django_async_view": posted(world, pace, lambda: _django(world), 64),
                "plain_asgi_noop": noop(world, pace),
                "pgbench_insert": pgbench_insert(world.url, events.stored(), pace, 64),
                **({"jetstream_sync": _jetstream(pace, 64)} if nats.flushes() else {}),
            },
            floor=8.0,
            goal=20.0,
        ),
        Case(
            name="emit_batch_100",
            unit="events/s",
            product=_batches(world, pace),
            baselines={"raw_copy": raw_copy(world.url, events.stored(), pace)},
            floor=0.12,
            goal=0.35,
        ),
        Case(
            name="emit_1",
            unit="ms",
            product=latency(world, pace, lambda: world.emit_target("emit.one")),
            baselines={
                "django_async_view": latency(world, pace, lambda: _django(world)),
                "plain_asgi_noop": latency(world, pace, lambda: _noop(world)),
            },
            lower_is_better=True,
        ),
        Case(name="emit_64_ids", unit="requests/s", product=_with_ids(world, pace)),
        *(
            Case(
                name=f"emit_processes_{count}",
                unit="requests/s",
                product=_spread(world, pace, count),
                baselines={"one_process": _spread(world, pace, 1)},
            )
            for count in (PROCESSES if pace.own_hubs else PROCESSES[:1])  # a smoke run has fewer
        ),
        Case(
            name="emit_64_quota",
            unit="requests/s",
            product=posted(world, pace, lambda: _with_quotas(world), 64),
            baselines={"without_quota": posted(world, pace, lambda: world.emit_target("emit"), 64)},
            floor=0.9,
            goal=0.95,
        ),
    ]


def _with_quotas(world: World) -> Target:
    """Return the target of a client whose quotas are never reached."""
    target = world.emit_target("emit")
    headers = {**target.headers, "authorization": f"Bearer {_bounded_key(world)}"}
    return target._replace(headers=headers)


@cache
def _bounded_key(world: World) -> str:
    key = world.new_key("bounded", "emit:*")
    with psycopg.connect(world.url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO quotas (zone_id, client_id, kind, value)"
            " SELECT zone_id, id, unnest(ARRAY['events_per_s', 'sockets']), %s"
            " FROM clients WHERE name = 'bounded'",
            (limits.SOCKETS_QUOTA_MAX,),
        )
    return key


def _jetstream(pace: Pace, connections: int) -> Measure:
    """Measure messages per second of a JetStream that flushes each one to the disk."""

    def measure() -> Reading:
        with nats.running(sync=True) as server:
            target = Target(server.port, "", {})
            body = events.one().decode()
            job = NatsPublishJob(target, body, connections, pace.seconds, pace.warmup_s)
            process = psutil.Process(server.pid)
            figures = run_load(job)
            used = process.cpu_times()
        figures["cpu_us"] = (used.user + used.system) / max(figures.pop("all"), 1) * 1e6
        return Reading(figures.pop("per_s"), figures)

    return measure


def noop(world: World, pace: Pace) -> Measure:
    """Measure requests per second of the same server with an application that does nothing."""
    return posted(world, pace, lambda: _noop(world), 64)


def _django(world: World) -> Target:
    return world.baseline_target("django_app:app", f"/emit/{world.streams['django']}")


def _noop(world: World) -> Target:
    return world.baseline_target("plain:noop")


def _job(target: Target, pace: Pace, body: bytes, connections: int) -> HttpJob:
    return HttpJob(target, body.decode(), connections, pace.seconds, pace.warmup_s)


def posted(world: World, pace: Pace, target: Find, connections: int) -> Measure:
    """Measure requests per second, one event each, on so many connections."""

    def measure() -> Reading:
        job = _job(target(), pace, events.one(), connections)
        figures = world.load(f"POST of one event, {connections} connections", job)
        return Reading(figures.pop("per_s"), figures)

    return measure


def _spread(world: World, pace: Pace, processes: int) -> Measure:
    """Measure requests per second, one event each, on connections to several web processes."""

    def measure() -> Reading:
        target = world.emit_target("emit")
        targets = [target._replace(port=one.port) for one in world.products(processes)]
        each = CONNECTIONS // processes
        jobs = [_job(target, pace, events.one(), each) for target in targets]
        found = world.loads(f"POST of one event to {processes} web processes", jobs)
        figures = {name: found[0][name] for name in ("cpu_us", "all_cpu_us")}
        figures["p99_ms"] = max(one["p99_ms"] for one in found)
        return Reading(sum(one["per_s"] for one in found), figures)

    return measure


def _batches(world: World, pace: Pace) -> Measure:
    def measure() -> Reading:
        job = _job(world.emit_target("emit.batch"), pace, events.batch(BATCH), 16)
        figures = world.load(f"POST of {BATCH} events, 16 connections", job)
        return Reading(figures.pop("per_s") * BATCH, figures)

    return measure


def latency(world: World, pace: Pace, target: Find) -> Measure:
    """Measure the p50 of a POST of one event on one connection."""

    def measure() -> Reading:
        job = _job(target(), pace, events.one(), 1)
        figures = world.load("POST of one event, 1 connection", job)
        return Reading(figures.pop("p50_ms"), figures)

    return measure


def _with_ids(world: World, pace: Pace) -> Measure:
    def measure() -> Reading:
        before, after = events.numbered(time.time_ns() // 1_000_000)
        job = _job(world.emit_target("emit.ids"), pace, before, 64)
        job = job._replace(after=after.decode())
        figures = world.load("POST of one event with a producer's id, 64 connections", job)
        return Reading(figures.pop("per_s"), figures)

    return measure
