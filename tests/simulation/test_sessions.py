"""The short versions of `python -m tests.chaos sessions` and `restart`, and mistakes that the judge
of the orders must find.
"""

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.restart.run import Drill
from tests.chaos.sessions.consumer import Connection, Consumer, Plan, Received
from tests.chaos.sessions.flow import Emitted, Key
from tests.chaos.sessions.orders import SORTED, connection_problems, missing
from tests.chaos.sessions.run import PLANS, scene_of

NOW_US = 1_800_000_000_000_000
EVENTS: dict[Key, Emitted] = {
    ("alpha", 1): Emitted(1, "report", 0, NOW_US + 3, 0, 2),
    ("alpha", 2): Emitted(2, "alarm", 2, NOW_US + 1, NOW_US + 50, 0),
    ("beta", 1): Emitted(3, "order", 1, NOW_US + 2, NOW_US + 90, 0),
}
FIRST, SECOND, THIRD = EVENTS
RIGHT: dict[str, list[Key]] = {
    "none": [THIRD, FIRST, SECOND],
    "fifo": [FIRST, THIRD, SECOND],
    "priority": [SECOND, THIRD, FIRST],
    "validity": [SECOND, THIRD, FIRST],
    "supplier": [FIRST, SECOND, THIRD],
    "type": [SECOND, THIRD, FIRST],
    "timestamp": [SECOND, THIRD, FIRST],
    "causal": [SECOND, FIRST, THIRD],
}


def connection(
    keys: list[Key], reason: str = "", *, stored: frozenset[Key] = frozenset()
) -> Connection:
    """Return a quiet connection on which these came; the last one for a reason."""
    received = [Received(key, EVENTS[key].number, "", NOW_US) for key in keys]
    received[-1] = received[-1]._replace(reason=reason)
    return Connection(NOW_US, stored, received, quiet=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="eventhub-chaos-", dir="/tmp"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_every_order_is_run_and_judged() -> None:
    assert {plan.order for plan in PLANS} == {*RIGHT} == {*SORTED, "none", "fifo", "causal"}


@pytest.mark.parametrize("order", RIGHT)
def test_what_leaves_the_order_without_a_reason_is_found(order: str) -> None:
    right = RIGHT[order]
    wrong = right[::-1]
    assert list(connection_problems(connection(right), order, EVENTS)) == []
    assert len(list(connection_problems(connection(wrong), order, EVENTS))) == 1
    # of two events out of order the later one may say why
    late = connection(wrong[-2:] if order not in ("none", "fifo", "causal") else wrong, "late")
    if order not in ("none", "fifo", "causal"):
        assert list(connection_problems(late, order, EVENTS)) == []


def test_repeats_acknowledged_strange_and_expired_events_are_found() -> None:
    twice = connection([FIRST, FIRST])
    again = connection([FIRST], stored=frozenset([FIRST]))
    strange = connection([FIRST])
    strange.received[0] = strange.received[0]._replace(number=9)
    expired = connection([SECOND])._replace(began_us=NOW_US + 60)
    for each in (twice, again, strange, expired):
        assert len(list(connection_problems(each, "fifo", EVENTS))) == 1


def test_a_lost_event_is_found() -> None:
    consumer = Consumer("", Plan("fifo", "fifo", {}), random.Random(1))
    received = connection([FIRST])
    assert missing(consumer, received, EVENTS, NOW_US) == [SECOND, THIRD]
    assert missing(consumer, received, EVENTS, NOW_US + 60) == [THIRD]
    consumer.acknowledged.add(THIRD)
    assert missing(consumer, received, EVENTS, NOW_US + 60) == []


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.req("RDY-49", "RDY-50", "RDY-48")
@pytest.mark.timeout(240)
async def test_every_order_holds_while_web_processes_are_killed(folder: Path) -> None:
    async with scene_of(folder, rate=60.0, seed=5) as scene:
        found = await scene.round(1, seconds=4.0)
    assert found.problems == []
    assert found.kills > 0
    assert found.emitted > 50
    assert found.connections > 3 * len(PLANS)
    assert found.repeats > 0


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.timeout(300)
async def test_sockets_return_from_replaced_killed_and_restarted_processes(folder: Path) -> None:
    async with Drill(folder, sockets=60, rate=30.0) as drill:
        steps = await drill.go(seconds=1.0)
        problems = [problem for step in steps for problem in step.problems] + drill.judge()
        summary = drill.summary()
    assert problems == []
    assert [step.attempts >= 20 for step in steps] == [True] * 3
    assert summary["emitted"] != 0
