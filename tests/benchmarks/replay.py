"""`replay`: a whole stream over one connection, in protobuf and JSON, against COPY of its rows."""

import json
import time
from functools import cache
from typing import LiteralString

import psycopg

from tests.benchmarks.load.jobs import ReplayJob
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

STREAM = "replay"
LISTEN = json.dumps({"op": "listen", "listener": "bench", "stream": STREAM, "from": "oldest"})
_COPY: LiteralString = (
    "COPY (SELECT sequence, mask, payload FROM events WHERE segment_id IN"
    " (SELECT id FROM segments WHERE stream_id = {})) TO STDOUT (FORMAT BINARY)"
)


def cases(world: World, pace: Pace) -> list[Case]:
    @cache
    def filled() -> float:
        """Return the seconds that filling took, on first use."""
        return float(world.fill(STREAM, pace.replayed)["took_s"])

    def measured(listen: str, form: str) -> Measure:
        def measure() -> Reading:
            assert filled()
            job = ReplayJob(world.emit_target(STREAM), listen, pace.replayed, form)
            transport = "websocket" if listen else "HTTP"
            figures = world.load(f"replay of {pace.replayed} events, {transport}, {form}", job)
            return Reading(figures.pop("per_s"), figures)

        return measure

    def copied() -> Reading:
        assert filled()
        return raw_copy_out(world.url, world.streams[STREAM], pace.replayed)

    return [
        Case(
            name=f"replay_1m_{name}",
            unit="events/s",
            product=measured(listen, form),
            baselines={"raw_copy_out": copied},
        )
        for name, listen, form in (
            ("socket", LISTEN, "protobuf"),
            ("http", "", "protobuf"),
            ("socket_json", LISTEN, "json"),
            ("lines", "", "json"),
        )
    ]


def raw_copy_out(url: str, stream_id: int, count: int) -> Reading:
    """Measure rows per second of one COPY in the order of the table, without decoding."""
    query = psycopg.sql.SQL(_COPY).format(psycopg.sql.Literal(stream_id))
    with psycopg.connect(url) as connection:
        began = time.perf_counter()
        with connection.cursor().copy(query) as copy:
            rows = sum(1 for _ in copy)
        seconds = time.perf_counter() - began
    assert rows >= count  # and what marks the end
    return Reading(count / seconds)
