"""Tells how far a job is: a line of JSON on standard output now and then, for the hub that started
it. Spark module.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import SparkContext

_INTERVAL_S = 0.5


class Phases:
    """What the job is at, in words for people."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self.now = "starting"

    def begin(self, text: str) -> None:
        """From here on the job does this: `matching events`."""
        self.now = text
        self._context.setJobDescription(text)


@contextmanager
def reported_phases(context: SparkContext) -> Iterator[Phases]:
    """Tell until the block is left."""
    phases = Phases(context)
    over = threading.Event()

    def tell_on() -> None:
        before, is_over = "", False
        while not is_over:
            is_over = over.wait(_INTERVAL_S)  # what came last is told, too
            line = json.dumps({"phase": phases.now, **_counted(context)})
            if line != before:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
                before = line

    def keep_telling() -> None:
        with suppress(Py4JError, OSError):  # the JVM has gone
            tell_on()

    thread = threading.Thread(target=keep_telling, daemon=True)
    thread.start()
    try:
        yield phases
    finally:
        over.set()
        thread.join()


def _counted(context: SparkContext) -> dict[str, int]:
    """Stages and tasks of all of Spark's jobs so far. A stage that was skipped has no tasks. With
    what is under way, so that the hub hears when tasks that waited for a worker have begun.
    """
    tracker = context.statusTracker()
    stages: dict[int, tuple[int, int, int]] = {}
    for job in tracker.getJobIdsForGroup(None):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            found = tracker.getStageInfo(stage)
            if found:
                stages[stage] = (found.numCompletedTasks, found.numTasks, found.numActiveTasks)
    return {
        "stages_done": sum(done == tasks for done, tasks, _ in stages.values()),
        "stages": len(stages),
        "tasks_done": sum(done for done, _, _ in stages.values()),
        "tasks": sum(tasks for _, tasks, _ in stages.values()),
        "tasks_active": sum(active for _, _, active in stages.values()),
    }
