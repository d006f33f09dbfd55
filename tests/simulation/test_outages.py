"""The short versions of `python -m tests.chaos storm`, `outage` and `backlog`, in one hub whose
clock is driven, with the same judges.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.hub import Crew
from tests.chaos.outages import away, backlog, storm
from tests.chaos.outages.clock import Hours
from tests.chaos.outages.recovery import Recovered, recovery_wrong
from tests.chaos.outages.scene import Scene, Tenant

CREW = Crew(web=1, forwarders=1, workers=2)
RATE = 10.0
SECONDS = 2.0
DELIVERIES = 600
QUOTA_BYTES = 64 * 1024 * 1024  # partitions of 4 MiB
BACKLOG = backlog.Plan(events=200, seconds=SECONDS, quota_bytes=QUOTA_BYTES)
GONE_SCHEDULE = [5, 60]
PLAN = away.Plan(hours=26, events=20, gone=40, schedule=GONE_SCHEDULE, step_s=9_000.0, every_h=13)
PATIENCE = pytest.mark.timeout(240)
MODULE = pytest.mark.asyncio(loop_scope="module")
pytestmark = [pytest.mark.slow, PATIENCE]


def tenants(absent_url: str) -> Sequence[Tenant]:
    return [
        *storm.tenants(RATE),
        *away.tenants(GONE_SCHEDULE, absent_url),
        *backlog.tenants(),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[Scene]:
    folder = Path(tempfile.mkdtemp(prefix="eventhub-outages-", dir="/tmp"))
    quota = {"EVENTHUB_QUOTA_BYTES": str(QUOTA_BYTES)}
    try:
        async with Scene.open(folder, tenants, 7, CREW, **quota) as scene:
            yield scene
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@MODULE
async def test_an_endpoint_with_a_backlog_gets_few_requests_while_it_fails(scene: Scene) -> None:
    found = await storm.storm(scene, DELIVERIES, SECONDS)
    problems = await storm.judged(scene, found, CREW)
    assert [each for each in problems if " waits " not in each] == []  # the machine is busy
    assert 5 <= len(found.hour) <= storm.REQUESTS_MAX
    assert sum(found.accepted) == pytest.approx(DELIVERIES, rel=0.01)


@MODULE
async def test_receivers_that_return_get_everything_and_those_that_do_not_are_recovered(
    scene: Scene,
) -> None:
    found = await away.outage(scene, PLAN)
    assert await away.judged(scene, found) == []
    assert found.requests["gone-parallel"] > 0
    assert "away-parallel" not in found.requests  # it refused every connection
    assert found.pending[away.AWAY][-1] == 3 * 2 * PLAN.events


@MODULE
async def test_a_drained_backlog_leaves_no_space_used_when_its_partitions_are_retired(
    scene: Scene,
) -> None:
    """Last: months pass."""
    found = await backlog.backlog(scene, BACKLOG)
    problems = await backlog.judged(scene, found)
    assert [each for each in problems if " takes " not in each] == []
    sizes = {moment: each["deliveries"] for moment, each in found.sizes.items()}
    assert sizes["full"] > sizes["before"]
    assert sizes["retired"] < sizes["drained"]


@MODULE
async def test_the_clock_moves_and_nothing_that_lives_is_silent(scene: Scene) -> None:
    """An hour passes; no worker, forwarder or lease has ended by it."""
    alive = (
        "SELECT (SELECT array_agg(id ORDER BY id) FROM callback_workers),"
        " (SELECT array_agg(id ORDER BY id) FROM forwarders),"
        " (SELECT sum(epoch) FROM forwarding)"
    )
    before = await scene.hub.rows(alive)
    [(now,)] = await scene.hub.rows("SELECT now()")
    await Hours(scene.clock, []).run(3_600.0)
    [(later,)] = await scene.hub.rows("SELECT now()")
    assert (later - now).total_seconds() == pytest.approx(3_600, abs=30)
    assert await scene.hub.rows(alive) == before
    silent = (
        "SELECT (SELECT count(*) FROM callback_workers"
        " WHERE last_seen_at < now() - interval '30 s'),"
        " (SELECT count(*) FROM forwarders WHERE last_seen_at < now() - interval '30 s'),"
        " (SELECT count(*) FROM forwarding WHERE expires_at BETWEEN now() - interval '2 h'"
        " AND now() - interval '30 s')"
    )
    assert await scene.hub.rows(silent) == [(0, 0, 0)]


def test_the_judge_of_a_recovery_detects_what_is_not_reported() -> None:
    run = {"state": "completed", "written": 4, "missing": 0}
    kinds = {"endpoint.circuit_opened": 1, "delivery.dead_lettered": 1}
    right = Recovered({7: 4}, {7: 4}, kinds, {7: 4}, {7: run}, 1.0)
    assert recovery_wrong(right, 4, {"gone": 7}) == []
    for wrong in (
        right._replace(listed={7: 3}),
        right._replace(announced={}),
        right._replace(previewed={7: 5}),
        right._replace(types={"delivery.dead_lettered": 1}),
        right._replace(runs={7: {**run, "written": 3}}),
        right._replace(runs={7: {**run, "state": "failed"}}),
    ):
        assert len(recovery_wrong(wrong, 4, {"gone": 7})) == 1


def test_the_judge_of_a_backlog_detects_what_takes_longer_beside_it() -> None:
    """An idle value below 5 ms counts as 5 ms."""
    idle = {"emit": 0.001, "overview": 0.01, "delivery to one": 0.03}
    failing = {"emit": 0.024, "overview": 0.049, "delivery to one": 0.14}
    right = {"idle": idle, "failing": failing, "draining": {**failing, "delivery to one": 1.0}}
    assert backlog.slower(right) == []
    for phase, slow in (
        ("failing", {"emit": 0.026}),
        ("failing", {"delivery to one": 0.16}),
        ("draining", {"overview": 0.051}),
    ):
        assert len(backlog.slower({**right, phase: {**right[phase], **slow}})) == 1


def test_the_judge_of_a_storm_detects_a_neighbour_that_waits() -> None:
    assert storm.slower("", {"one": 0.1}, {"one": 0.12}) == []
    assert len(storm.slower("", {"one": 0.1}, {"one": 0.14})) == 1
