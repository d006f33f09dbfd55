"""`sessions`: the memory of sessions that wait, the latency of thousands with filters of their own,
alone and while a tenth of them stalls; beside NATS JetStream, where its server is installed.
"""

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from typing import Any

import orjson

from tests.benchmarks import nats
from tests.benchmarks.load.jobs import SessionsJob, Target
from tests.benchmarks.load.start import LoadFailed, run_load
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

STREAM = "sessions"
IDLE, FILTERS = 10_000, 5_000
PER_CLIENT = 1_000  # sessions, the hub's limit
PER_SOCKET = 50
KINDS = 5  # sessions of each device
PER_S = 2_000.0
STALLED = 10  # one of so many
STALLED_MAX = 1.2
KB_MAX = {PER_SOCKET: 30.0, 1: 100.0}  # of a session that waits, by sessions of a socket
CREATORS = 8  # requests that create sessions at once


def cases(world: World, pace: Pace) -> list[Case]:
    scene = _Scene(world, pace)
    return [
        Case(
            name=name,
            unit="kB",
            product=scene.idle(per_socket),
            baselines={
                "allowed": _allowed(KB_MAX[per_socket]),
                **scene.beside_nats(scene.idle_nats(per_socket)),
            },
            floor=1.0,
            lower_is_better=True,
        )
        for name, per_socket in (("sessions_idle", PER_SOCKET), ("sessions_idle_sockets", 1))
    ] + [
        Case(
            name="sessions_filters",
            unit="ms",
            product=scene.filters(),
            baselines=scene.beside_nats(scene.filters_nats),
            lower_is_better=True,
        ),
        Case(
            name="sessions_stalled",
            unit="ms",
            product=scene.filters(stalled=STALLED),
            baselines={"none_stalled": scene.filters()},
            floor=STALLED_MAX,
            lower_is_better=True,
        ),
    ]


def _allowed(value: float) -> Measure:
    return lambda: Reading(value)


class _Scene:
    """One web process with sessions of several clients. A smoke run has one of a hundred."""

    def __init__(self, world: World, pace: Pace) -> None:
        self._world = world
        self._pace = pace
        self._idle = pace.sessions
        self._filters = pace.sessions * FILTERS // IDLE
        self._rate = PER_S * pace.sessions / IDLE
        self._registered = 0  # sessions that exist

    def idle(self, per_socket: int) -> Measure:
        """Measure with a fresh process each time: freed memory is not requested again."""

        def measure() -> Reading:
            self._require_registered(self._idle)
            self._world.end_product()
            job = self._job(self._idle, per_socket)
            figures = self._world.load(f"{self._idle} idle sessions", job)
            return Reading(figures.pop("kb_each"), figures)

        return measure

    def filters(self, stalled: int = 0) -> Measure:
        def measure() -> Reading:
            self._require_registered(self._filters)
            self._world.end_product()
            job = self._job(self._filters, PER_SOCKET)
            job = job._replace(rate=self._rate, stalled=stalled)
            return _timed(self._world.load(f"{self._filters} sessions with filters", job))

        return measure

    def beside_nats(self, measure: Measure) -> dict[str, Measure]:
        """Return the baseline, if the server of NATS is installed."""
        return {"nats_jetstream": measure} if nats.program() else {}

    def idle_nats(self, per_socket: int) -> Measure:
        def measure() -> Reading:
            with nats.running() as server:
                figures = run_load(self._nats_job(server, self._idle, per_socket))
            return Reading(figures.pop("kb_each"), figures)

        return measure

    def filters_nats(self) -> Reading:
        with nats.running() as server:
            job = self._nats_job(server, self._filters, PER_SOCKET)
            return _timed(run_load(job._replace(rate=self._rate)))

    def _require_registered(self, count: int) -> None:
        """Create the sessions up to this number that do not exist yet."""
        self._world.product()
        devices = max(self._filters // KINDS, 1)
        for client in range(-(-count // PER_CLIENT)):
            first = max(client * PER_CLIENT, self._registered)
            numbers = range(first, min((client + 1) * PER_CLIENT, count))
            if numbers:
                _register(self._world, client, numbers, devices)
        self._registered = max(self._registered, count)

    def _job(self, sessions: int, per_socket: int) -> SessionsJob:
        world, pace = self._world, self._pace
        return SessionsJob(
            target=world.emit_target(STREAM),
            stream=STREAM,
            keys=tuple(_key(world, n) for n in range(-(-sessions // PER_CLIENT))),
            per_client=PER_CLIENT,
            sessions=sessions,
            per_socket=per_socket,
            devices=max(sessions // KINDS, 1),
            pid=world.product().pid,
            seconds=5 * pace.seconds,
            warmup_s=pace.warmup_s,
        )

    def _nats_job(self, server: nats.NatsServer, sessions: int, per_socket: int) -> SessionsJob:
        job = self._job(sessions, per_socket)
        return job._replace(target=Target(server.port, "", {}), pid=server.pid, nats=True)


def _timed(figures: dict[str, float]) -> Reading:
    if figures["lost_frames"] or figures["doubled"]:
        raise LoadFailed(f"not every event came once to each session: {figures}")
    return Reading(figures.pop("p99_ms"), figures)


@cache
def _key(world: World, number: int) -> str:
    return world.new_key(f"sessions-{number}", "listen:*")


def _register(world: World, client: int, numbers: range, devices: int) -> None:
    """Create these sessions of a client, each with a registration of its own."""
    key = _key(world, client)
    parts = [numbers[at::CREATORS] for at in range(CREATORS)]
    with ThreadPoolExecutor(CREATORS) as threads:
        list(threads.map(lambda part: _create(world, key, part), parts))
    lines = b"\n".join(_lines(numbers, devices))
    with closing(_connection(world)) as opened:
        headers = {**_headers(key), "Content-Type": "application/x-ndjson"}
        opened.request("POST", "/v1/registrations/bulk", lines + b"\n", headers)
        last = json.loads(opened.getresponse().read().splitlines()[-1])
    if last.get("created") != len(numbers):
        raise LoadFailed(f"bulk: {last}")


def _create(world: World, key: str, numbers: range) -> None:
    for number in numbers:
        call(world, key, "/v1/sessions", {"name": f"s{number}", "kind": "consumer"})


def call(world: World, key: str, path: str, body: dict[str, Any]) -> None:
    """Create something by the API. Raise LoadFailed."""
    with closing(_connection(world)) as opened:
        opened.request("POST", path, json.dumps(body), _headers(key))
        answer = opened.getresponse()
        text = answer.read()
    if answer.status != 201:
        raise LoadFailed(f"{path}: {answer.status} {text[:400]!r}")


def _connection(world: World) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", world.product().port, timeout=120)


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def _lines(numbers: range, devices: int) -> Iterator[bytes]:
    """Yield the lines for the bulk route (load/sessions.py says what a session filters)."""
    for number in numbers:
        kind, device = divmod(number, devices)
        attributes = {"device": device, "kind": kind}
        fields = {"op": "create", "key": f"k{number}", "session": f"s{number}"}
        filter = {"domain": "fleet", "type": "reading", "attributes": attributes}
        yield orjson.dumps({**fields, "streams": [STREAM], **filter})
