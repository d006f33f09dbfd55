"""`push`: from POST to frame on a websocket, against Channels' group_send and a plain broadcast."""

import json
from collections.abc import Callable
from functools import cache

from tests.benchmarks import events, nats
from tests.benchmarks.baselines import centrifuge, socketio
from tests.benchmarks.load.jobs import NatsLatencyJob, SocketsJob, Target
from tests.benchmarks.load.start import run_load
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

PROCESSES = (2, 4)
LAGGING = 2  # one that reads nothing and one that reads little, beside the timed sockets
LAGGING_MAX = 1.2  # times the p99 without them
HISTORY = "push.history"
HISTORY_EVENTS = 50  # for each timed socket
EVENT_MARK = '{"op":"event"'  # how the hub's event frames begin
ORDERED = (
    ("value", "p99_ms"),
    ("in_hub_p50_ms", "in_hub_p99_ms"),
    ("in_hub_p50_ms", "value"),
)


def cases(world: World, pace: Pace) -> list[Case]:
    return [
        Case(
            name="fanout_100",
            unit="frames/s",
            product=_flood(world, pace, 100, per_body=100, ahead=1_000),
            baselines={"group_send_in_memory": _group_send(world, pace)},
            floor=6.0,
            goal=10.0,
        ),
        Case(
            name="latency_1",
            unit="ms",
            product=_latency(world, pace, 1),
            baselines={
                "plain_asgi_broadcast": _plain_latency(world, pace),
                **_broadcasters(world, pace, 1),
                **({"jetstream_sync": _jetstream(pace)} if nats.flushes() else {}),
            },
            floor=5.0,
            goal=2.5,
            lower_is_better=True,
            order=ORDERED,
        ),
        Case(
            name="latency_1_library",
            unit="ms",
            product=_by_library(world, pace),
            baselines={"plain_asgi_broadcast": _plain_latency(world, pace, library=True)},
            floor=5.0,
            goal=2.5,
            lower_is_better=True,
        ),
        Case(
            name="latency_1_async",
            unit="ms",
            product=_timed(world, lambda: _product_job(world, pace, 1, stream="kept.async")),
            order=ORDERED,
        ),
        *_fan_outs(world, pace),
    ]


def _fan_outs(world: World, pace: Pace) -> list[Case]:
    return [
        Case(
            name="latency_100",
            unit="ms",
            product=_latency(world, _fewer(pace, 5), 100),
            baselines=_broadcasters(world, _fewer(pace, 5), 100),
            lower_is_better=True,
        ),
        Case(
            name="fanout_1000",
            unit="frames/s",
            product=_flood(world, pace, pace.many_sockets, per_body=20, ahead=200),
            baselines=_broadcasters(world, pace, pace.many_sockets, per_body=20, ahead=200),
        ),
        *(
            Case(
                name=f"fanout_processes_{count}",
                unit="frames/s",
                product=_by_processes(world, pace, count),
                baselines={"one_process": _by_processes(world, pace, 1)},
            )
            for count in (PROCESSES if pace.own_hubs else PROCESSES[:1])
        ),
        Case(
            name="fanout_100_single",
            unit="frames/s",
            product=_flood(world, pace, 100, per_body=1, ahead=8),
            baselines=_broadcasters(world, pace, 100, ahead=8),
        ),
        Case(
            name="fanout_1000_single",
            unit="frames/s",
            product=_flood(world, pace, pace.many_sockets, per_body=1, ahead=8),
            baselines=_broadcasters(world, pace, pace.many_sockets, ahead=8),
        ),
        Case(
            name="latency_1000",
            unit="ms",
            product=_latency(world, _fewer(pace, 20), pace.many_sockets),
            baselines=_broadcasters(world, _fewer(pace, 20), pace.many_sockets),
            lower_is_better=True,
        ),
        Case(
            name="lagging_1000",
            unit="ms",
            product=_beside_lagging(world, _fewer(pace, 20), LAGGING),
            baselines={"none_lagging": _beside_lagging(world, _fewer(pace, 20), 0)},
            floor=LAGGING_MAX,
            lower_is_better=True,
        ),
    ]


def _fewer(pace: Pace, times: int) -> Pace:
    return pace._replace(latency_samples=max(pace.latency_samples // times, 2))


def _product_job(world: World, pace: Pace, sockets: int, stream: str = "push") -> SocketsJob:
    listen = {"op": "listen", "listener": "bench", "stream": stream, "from": "now"}
    return SocketsJob(
        target=world.emit_target(stream),
        body=events.one().decode(),
        events_per_body=1,
        listen=json.dumps(listen),
        mark=EVENT_MARK,
        sockets=sockets,
        connections=1,
        ahead=1,
        seconds=pace.seconds,
        warmup_s=pace.warmup_s,
        samples=pace.latency_samples,
    )


def _flood(world: World, pace: Pace, sockets: int, *, per_body: int, ahead: int) -> Measure:
    """Measure with bodies of several events, which keep the server busy with frames, one frame per
    event. `ahead` is far below the size of the ring.
    """

    def measure() -> Reading:
        job = _product_job(world, pace, sockets)
        body = events.batch(per_body).decode()
        job = job._replace(body=body, events_per_body=per_body, ahead=ahead)
        return _frames(world, job._replace(connections=4, samples=0))

    return measure


def _by_processes(world: World, pace: Pace, count: int) -> Measure:
    """Measure so many web processes: one is posted to, and sockets are connected to all in turn."""

    def measure() -> Reading:
        further = world.products(count)[1:]
        job = _product_job(world, pace, pace.many_sockets)
        body = events.batch(20).decode()
        job = job._replace(body=body, events_per_body=20, ahead=200, connections=4, samples=0)
        ports, pids = [one.port for one in further], [one.pid for one in further]
        return _frames(world, job._replace(ports=ports, pids=pids))

    return measure


def _broadcasters(
    world: World, pace: Pace, sockets: int, *, per_body: int = 1, ahead: int = 0
) -> dict[str, Measure]:
    """Return the baselines of socket.io and of Centrifugo's library, of those that are there: with
    `ahead` their frames a second, else their latency.
    """

    def measure(name: str, listen: str, mark: str) -> Measure:
        def job() -> SocketsJob:
            made = _product_job(world, pace, sockets)
            body = made.body if per_body == 1 else events.batch(per_body).decode()
            target = world.broadcaster_target(name)
            made = made._replace(target=target, listen=listen, mark=mark, body=body)
            if not ahead:
                return made
            return made._replace(events_per_body=per_body, ahead=ahead, connections=4, samples=0)

        return (lambda: _frames(world, job())) if ahead else _timed(world, job)

    return {
        name: measure(name, module.CONNECT, module.MARK)
        for name, module in (("socketio", socketio), ("centrifuge", centrifuge))
        if module.available()
    }


def _group_send(world: World, pace: Pace) -> Measure:
    def measure() -> Reading:
        target = world.baseline_target("channels_app:app")
        job = _baseline_job(target, pace, sockets=100)
        body = events.batch(10).decode()
        job = job._replace(body=body, events_per_body=10, ahead=40, connections=4)
        return _frames(world, job)

    return measure


def _baseline_job(target: Target, pace: Pace, *, sockets: int) -> SocketsJob:
    """Return a job for a baseline, which sends the event and nothing else."""
    mark = '{"'
    one = events.one().decode()
    return SocketsJob(target, one, 1, "", mark, sockets, 1, 1, pace.seconds, pace.warmup_s)


def _frames(world: World, job: SocketsJob) -> Reading:
    server = world.server_of(job.target)
    job = job._replace(pids=[server.pid, *job.pids])
    figures = world.load(f"fan-out to {job.sockets} sockets", job)
    return Reading(figures.pop("per_s"), figures)


def _latency(world: World, pace: Pace, sockets: int) -> Measure:
    return _timed(world, lambda: _product_job(world, pace, sockets))


def _beside_lagging(world: World, pace: Pace, lagging: int) -> Measure:
    """Measure the p99 of sockets beside others that hardly read, or do not."""

    def measure() -> Reading:
        cursor = _history(world, pace)
        listen = {"op": "listen", "listener": "history", "stream": HISTORY, "from": cursor}
        job = _product_job(world, pace, pace.many_sockets - LAGGING)
        job = job._replace(lagging=lagging, history=json.dumps(listen))
        figures = world.load(f"emit to receipt, {lagging} of the sockets lag", job)
        return Reading(figures.pop("p99_ms"), figures)

    return measure


@cache
def _history(world: World, pace: Pace) -> str:
    """Fill a stream with more than sockets buffer; return the cursor before its first event."""
    cursor: str = world.fill(HISTORY, pace.many_sockets * HISTORY_EVENTS)["cursors"][0]
    return cursor


def _by_library(world: World, pace: Pace) -> Measure:
    return _timed(world, lambda: _product_job(world, pace, 1)._replace(library=True))


def _plain_latency(world: World, pace: Pace, *, library: bool = False) -> Measure:
    def job() -> SocketsJob:
        made = _baseline_job(world.baseline_target("plain:broadcast"), pace, sockets=1)
        return made._replace(samples=pace.latency_samples, library=library)

    return _timed(world, job)


def _jetstream(pace: Pace) -> Measure:
    """Measure a JetStream that flushes each message to the disk, with a push consumer."""

    def measure() -> Reading:
        with nats.running(sync=True) as server:
            target = Target(server.port, "", {})
            figures = run_load(NatsLatencyJob(target, events.one().decode(), pace.latency_samples))
        return Reading(figures.pop("p50_ms"), figures)

    return measure


def _timed(world: World, job: Callable[[], SocketsJob]) -> Measure:
    def measure() -> Reading:
        made = job()
        figures = world.load(f"emit to receipt, {made.sockets} sockets", made)
        return Reading(figures.pop("p50_ms"), figures)

    return measure
