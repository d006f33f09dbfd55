"""Progress reports of a driver to the hub: lines of JSON on standard output. Spark module."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import SparkContext

_INTERVAL_S = 0.5


class Phases:
    """The job's current phase, as a text for people."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self.now = "starting"

    def begin(self, text: str) -> None:
        """Enter a phase, such as `matching events`."""
        self.now = text
        self._context.setJobDescription(text)


@contextmanager
def reported(context: SparkContext) -> Iterator[Phases]:
    """Report changes of phase and task counts until the block ends."""
    phases = Phases(context)
    over = threading.Event()

    def report() -> None:
        before, is_over = "", False
        while not is_over:
            is_over = over.wait(_INTERVAL_S)  # the last state is reported too
            line = json.dumps({"phase": phases.now, **_task_counts(context)})
            if line != before:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
                before = line

    def report_while_connected() -> None:
        with suppress(Py4JError, OSError):  # the JVM has ended
            report()

    thread = threading.Thread(target=report_while_connected, daemon=True)
    thread.start()
    try:
        yield phases
    finally:
        over.set()
        thread.join()


def _task_counts(context: SparkContext) -> dict[str, int]:
    """Count the stages and tasks of all Spark jobs so far; a skipped stage has no tasks.

    Active tasks are counted so that the line changes when tasks that waited for a worker start.
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
