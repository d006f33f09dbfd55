"""The short version of `python -m tests.chaos`: one hub under load, a round of each kind of fault,
the same judge.

The rounds share the hub and go on from each other, as in the long run; each is judged by itself.
"""

import random
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import aiohttp
import pytest
import pytest_asyncio

from tests.busy import stretched
from tests.chaos.events import Name, event_of
from tests.chaos.faults import FAULTS, Done, Fault, postgres_pids, stop_part
from tests.chaos.hub import HubUnderTest, send_signal
from tests.chaos.journal import Answer, Failure
from tests.chaos.judge import Judge, last_judgement
from tests.chaos.rounds import ANSWER_S_MAX, Plan, Round, run_round
from tests.chaos.until import until
from tests.chaos.world import STREAMS, Load, World

RATE = 1_050.0
OFFERED_PER_S = 1_000
SECONDS = 2.5
NOTICED_S_MAX = 5.0
PATIENCE = pytest.mark.timeout(240)

pytestmark = [pytest.mark.asyncio(loop_scope="module"), PATIENCE]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    data = Path(tempfile.mkdtemp(prefix="eventhub-chaos-", dir="/tmp"))  # sockets' names are short
    try:
        async with World.open(data, Load(RATE), random.Random(7)) as world:
            yield world
    finally:
        shutil.rmtree(data, ignore_errors=True)


async def run(world: World, name: str, fault: Fault) -> Round:
    """Return a round that must show nothing wrong, at the offered rate."""
    found = await run_round(world, Plan(0, name, fault, SECONDS), random.Random(name))
    assert found.problems == []
    assert found.offered_per_s >= OFFERED_PER_S
    return found


@pytest.mark.parametrize("name", ["kill-web", "kill-redis", "kill-postgres", "kill-backend"])
async def test_a_kill_loses_and_doubles_nothing(world: World, name: str) -> None:
    await run(world, name, FAULTS[name])


async def test_events_committed_without_a_reply_are_found_by_their_repeat(world: World) -> None:
    found = await run(world, "commit-without-reply", FAULTS["commit-without-reply"])
    assert found.found_again > 0


async def test_a_stopped_web_process_does_not_hold_up_the_other(world: World) -> None:
    """Emitters whose connection is with the stopped process wait for it; a new connection is the
    other process's, and none of its streams is locked."""
    took_s: list[float] = []

    async def stop_and_ask(hub: HubUnderTest, _dice: random.Random) -> Done:
        stopped = hub.pids(["web-1"])
        send_signal(stopped, SIGSTOP)
        try:
            took_s.extend([await emit_once_more(world, stream) for stream in STREAMS])
        finally:
            send_signal(stopped, SIGCONT)
        return Done("web-1")

    await run(world, "stop-web", Fault(stop_and_ask, refuses=False))
    assert len(took_s) == len(STREAMS)
    assert max(took_s) < 1.5


async def emit_once_more(world: World, stream: str) -> float:
    """Emit one event on a connection of its own; returns the seconds until it was acknowledged."""
    name = Name("again", time.time_ns() // 1000, 1)
    began = time.monotonic()
    world.journal.tried(stream, [name])
    event = event_of(name, at=began, with_id=True)
    async with (
        aiohttp.ClientSession(headers=world.headers) as http,
        http.post(f"{world.hub.url}/v1/streams/{stream}/events", json=event) as response,
    ):
        assert response.status == 200
        answer = Answer.of_json(await response.json())
    world.journal.promise(stream, [name], answer, began)
    return time.monotonic() - began


async def test_emit_and_listen_go_on_without_redis(world: World) -> None:
    found = await run(world, "stop-redis", stop_part("redis", 2.5))
    assert found.refused == 0
    assert found.silence_s < 2.0


async def test_while_postgres_is_away_callers_and_sockets_are_notified_and_all_resumes(
    world: World,
) -> None:
    """Open sockets stay open and get the states `waiting` (database_unavailable) and `resumed`,
    which the round asserts; a caller gets 503 with Retry-After in time."""
    asked: list[Failure] = []

    async def stop_and_ask(hub: HubUnderTest, _dice: random.Random) -> Done:
        stopped = postgres_pids(hub)
        known = {seen.name: len(seen.statuses) for seen in world.stayers}
        send_signal(stopped, SIGSTOP)
        try:
            for seen in world.stayers:
                more = partial(lambda s: len(s.statuses) > known[s.name], seen)
                await until(more, seen.name, stretched(NOTICED_S_MAX))
            asked.append(await emit_in_vain(world))
            if asked[-1].code == "outcome_unknown":  # it went into what was under way
                asked.append(await emit_in_vain(world))
        finally:
            send_signal(reversed(stopped), SIGCONT)
        return Done("postgres")

    await run(world, "stop-postgres", Fault(stop_and_ask, away_s_min=NOTICED_S_MAX))
    failure = asked[-1]
    assert (failure.status, failure.code) == (503, "database_unavailable")
    assert failure.retry_after
    assert failure.took_s < ANSWER_S_MAX


async def emit_in_vain(world: World) -> Failure:
    """Emit one event that must be refused; where the hub said so, the judge sees that it was not
    stored.
    """
    name = Name("vain", time.time_ns() // 1000, 1)
    began = time.monotonic()
    world.journal.tried("alpha", [name])
    async with (
        aiohttp.ClientSession(headers=world.headers) as http,
        http.post(
            f"{world.hub.url}/v1/streams/alpha/events",
            json=event_of(name, at=began, with_id=True),
        ) as response,
    ):
        answer = await response.json(content_type=None)
    unknown = answer["code"] == "outcome_unknown"
    world.journal.gave_up([name], stored=None if unknown else False)
    took_s = time.monotonic() - began
    advised = "Retry-After" in response.headers
    return Failure(time.monotonic(), "vain", response.status, answer["code"], advised, took_s)


async def test_the_whole_log_is_as_promised_after_all_faults(world: World) -> None:
    assert await last_judgement(world.hub, world.key, world.journal) == []


async def test_the_judge_sees_that_a_row_is_gone(world: World) -> None:
    """After all others: a judge that cannot find anything proves nothing."""
    async with await world.hub.connect() as connection:
        await connection.execute(
            "DELETE FROM events USING segments s, streams t WHERE s.id = events.segment_id"
            " AND t.id = s.stream_id AND t.name = %s AND sequence = 700",
            [STREAMS[0]],
        )
    problems = await Judge(world.hub, world.key, STREAMS).read_on()
    assert problems == [f"{STREAMS[0]}: 701 comes after 699"]
