"""Has the plan of a run carried out, for the command and for the API."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

from django.db import transaction

from delivery import retained
from eventhub import limits
from eventhub.access.system import announce, raw_connection
from eventhub.access.zone_names import zone_names
from eventhub.clock import SystemClock
from eventhub.env import Env
from eventhub.errors import DatabaseUnavailable
from eventhub.eventlog.archive.place import Place
from eventhub.eventlog.database import AWAY, connect
from eventhub.eventlog.retention import Rooms
from eventhub.eventlog.streams import lock_system
from eventhub.jobs.errors import NoPlan
from eventhub.jobs.folders import folder_of
from eventhub.jobs.retention.acting import Hub, Outcome, carry_out
from eventhub.jobs.retention.plan import Act, read_plan
from eventhub.jobs.rows import Run

APPLIED = "retention.applied"


class Applied(NamedTuple):
    """What came of a plan. `left`: acts for which the time was not enough."""

    run: int
    outcomes: list[Outcome]
    left: int

    def count(self, outcome: str) -> int:
        return sum(one.outcome == outcome for one in self.outcomes)

    def json(self) -> dict[str, Any]:
        """Of the outcomes a bounded number, refused ones first."""
        shown = sorted(self.outcomes, key=lambda one: one.outcome != "refused")
        return {
            "run": self.run,
            "done": self.count("done"),
            "refused": self.count("refused"),
            "unchanged": self.count("unchanged"),
            "left": self.left,
            "outcomes": [_json(one) for one in shown[: limits.PLAN_OUTCOMES_SHOWN_MAX]],
        }


class Course(NamedTuple):
    """How a plan is carried out."""

    dry_run: bool = False
    seconds: float = float("inf")  # as long as it takes
    told: Callable[[Outcome], None] = lambda _: None  # hears of each segment


def plan_of(env: Env, run: Run) -> list[Act]:
    """What the run's plan wants done. Raises NoPlan."""
    if run.state != "completed":
        raise NoPlan(state=run.state)
    try:
        return read_plan(folder_of(Path(env.data), run.job, run.id).result)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoPlan(state=run.state) from error


def apply(*, env: Env, run: Run, by: str, course: Course) -> Applied:
    """Carry out the plan of a run of the job `retention`, after an event of `system` has said who
    wants it. Raises NoPlan, DatabaseUnavailable; what was told is done then.
    """
    acts = plan_of(env, run)
    if not course.dry_run:
        with transaction.atomic():
            lock_system(raw_connection())  # a transaction begins with its first statement
            attributes = {"run": run.id, "by": by, "acts": len(acts)}
            announce(zone=run.params.get("zone"), type=APPLIED, attributes=attributes)
    try:
        outcomes = asyncio.run(_carried_out(env, acts, course))
    except AWAY as error:
        raise DatabaseUnavailable() from error
    return Applied(run.id, outcomes, len(acts) - len(outcomes))


async def _carried_out(env: Env, acts: list[Act], course: Course) -> list[Outcome]:
    rooms = Rooms(needs=retained.needs, zones=zone_names)
    clock = SystemClock()
    ends_s = clock.monotonic_s() + course.seconds
    outcomes: list[Outcome] = []
    connection = await connect(env.database_direct_url, name="eventhub retention")
    try:
        archive = Place(env.archive_url) if env.archive_url else None
        hub = Hub(connection, rooms, clock, archive)
        async with aclosing(carry_out(hub, acts, dry_run=course.dry_run)) as done:
            async for outcome in done:
                outcomes.append(outcome)
                course.told(outcome)
                if clock.monotonic_s() >= ends_s:
                    break
    finally:
        await connection.close()
    return outcomes


def _json(outcome: Outcome) -> dict[str, Any]:
    act = outcome.act
    names = ("zone", "stream", "segment", "first", "last", "action", "bytes")
    told = {name: getattr(act, name) for name in names}
    return {**told, "outcome": outcome.outcome, "why": outcome.why}
