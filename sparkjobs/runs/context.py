"""The context of a job's hooks (hooks.py): the run that they belong to. Plain module."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class RunContext(NamedTuple):
    """A running run."""

    run: int
    params: dict[str, Any]  # validated, with the ids of named objects (params.py)
    data: Path  # the hub's data folder
    database_url: str
    archive_url: str  # "": none
    result: Path  # the folder of result files, not published yet
    inputs: Path  # the exported tables and their snapshot (export/snapshot.py)
    work: Path  # scratch space; deleted when the run ends
    # reports a phase and its rows so far: `("reading versions", 1_000)`. Hooks call it regularly
    # and let its RunStopped propagate, which ends a cancelled run
    report: Callable[[str, int], None]
    # called right before work that cannot be undone: it raises RunStopped if the run is to end;
    # after it the run can no longer be stopped
    publishing: Callable[[], None]
