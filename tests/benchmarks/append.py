"""`append`: Log.append in one process without HTTP, against COPY and INSERT into an equal table."""

import json

from tests.benchmarks.baselines.rows import insert_per_commit, raw_copy
from tests.benchmarks.events import stored
from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World

WAITING = (1, 64, 256, 1_024)
BATCHES = ((100, 16), (1_000, 4))  # events of one append, emitters


def cases(world: World, pace: Pace) -> list[Case]:
    copy = raw_copy(world.url, stored(), pace)
    insert = insert_per_commit(world.url, stored(), pace)
    one = {"insert_per_commit": insert, "raw_copy": copy}
    many = {"raw_copy": copy}
    waiting = [
        Case(
            name=f"append_waiting_{emitters}",
            unit="events/s",
            product=_append(world, pace, emitters, 1),
            baselines=one if emitters == 1 else many,
        )
        for emitters in WAITING
    ]
    batches = [
        Case(
            name=f"append_batch_{events}",
            unit="events/s",
            product=_append(world, pace, emitters, events),
            baselines=many,
        )
        for events, emitters in BATCHES
    ]
    return [*waiting, *batches]


def _append(world: World, pace: Pace, emitters: int, events: int) -> Measure:
    work = [world.streams["append"], emitters, events, pace.seconds, pace.warmup_s]

    def measure() -> Reading:
        output = world.run_child("tests.benchmarks.inprocess", json.dumps(work))
        figures: dict[str, float] = json.loads(output)
        return Reading(figures.pop("per_s"), figures)

    return measure
