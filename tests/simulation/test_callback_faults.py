"""The short version of `python -m tests.chaos callbacks` and `exact`: rounds of faults in a whole
hub under load, with the same judges.
"""

import random
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.callbacks.harm import Plan
from tests.chaos.callbacks.receivers import SinkProcess
from tests.chaos.callbacks.rounds import rest, run_round
from tests.chaos.callbacks.sick import BEHAVING
from tests.chaos.callbacks.world import CallbackWorld
from tests.chaos.exact.run import exact, scene_at

RATE = 200.0
SECONDS = 2.0
TIMES = 4
FLOW = 1_000.0
PATIENCE = pytest.mark.timeout(240)
pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), PATIENCE]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[CallbackWorld]:
    folder = Path(tempfile.mkdtemp(prefix="eventhub-chaos-", dir="/tmp"))
    try:
        async with CallbackWorld.open(folder, RATE, 7) as world:
            yield world
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "names",
    [
        ("kill-leader", "flush-redis"),
        ("stop-forwarders",),
        ("stop-postgres", "kill-web"),
        ("kill-worker",),
    ],
)
async def test_faults_cost_repeats_at_most(world: CallbackWorld, names: tuple[str, ...]) -> None:
    """Checkpoints, deliveries, arrivals, their order and changes of registrations are judged under
    load.
    """
    world.go()
    found = await run_round(world, 1, Plan(names, 0.5), random.Random(names[0]), SECONDS)
    assert found.problems == []
    assert found.delivered > 0


async def test_sick_receivers_cost_nobody_an_event_or_its_order(world: CallbackWorld) -> None:
    """Eleven receivers that fail, each in its own way, with a fault meanwhile."""
    await world.add_sick()
    world.go()
    found = await run_round(world, 5, Plan(("kill-worker",), 0.5), random.Random(5), 3 * SECONDS)
    assert found.problems == []
    called = {name for name in world.sick.ids if name in world.arrivals.requests}
    assert called >= BEHAVING.keys(), called


async def test_at_rest_every_endpoint_has_exactly_the_expected_deliveries(
    world: CallbackWorld,
) -> None:
    _, problems = await rest(world)
    assert problems == []
    assert len(world.arrivals.taken) == len(world.judge.expected.expected) > RATE
    assert world.registrar.counts["POST 201"] > 0


async def test_sick_receivers_accepted_events_when_they_were_well(world: CallbackWorld) -> None:
    taken = {key[0] for key in world.arrivals.taken}
    assert taken >= world.sick.ids.keys()
    assert world.arrivals.answers.keys() >= {301, 429}  # which only they answer
    assert any(one.sick > 0 for one in world.sampler.depths)


async def test_the_judge_detects_a_missing_delivery(world: CallbackWorld) -> None:
    """Last: a judge that cannot find anything proves nothing."""
    async with await world.hub.connect() as connection:
        await connection.execute(
            "DELETE FROM deliveries WHERE (endpoint_id, segment_id, sequence) IN"
            " (SELECT endpoint_id, segment_id, sequence FROM deliveries ORDER BY 1, 2, 3 LIMIT 1)"
        )
    world.judge.expected.forget()
    problems = await world.judge.judge(world.arrivals, world.registrar.changes)
    assert [problem for problem in problems if "no delivery, though it was matched" in problem]


async def test_registrations_are_exact_while_events_flow_and_a_leader_dies(
    world: CallbackWorld, tmp_path: Path
) -> None:
    """In the same hub at rest, with a sink of its own."""
    with closing(SinkProcess(tmp_path / "sink.ndjson", 3)) as sink:
        async with scene_at(world.hub, world.key, sink, FLOW) as scene:
            outcome = await exact(TIMES, 3, scene)
    assert outcome.problems == []
    assert len(outcome.found) == TIMES
    assert [one.victim for one in outcome.found if one.script.harmed] != []
    assert all(one.expected_rows for one in outcome.found)
