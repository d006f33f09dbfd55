"""What a hook of a job is told of the run that it belongs to (hooks.py). Plain module."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class RunContext(NamedTuple):
    """A run under way."""

    run: int
    params: dict[str, Any]  # as checked, with the ids of what they name (params.py)
    data: Path  # the hub's data folder
    database_url: str
    archive_url: str  # "": none
    result: Path  # where files of the result go; in nobody's sight yet
    inputs: Path  # the tables, once they are exported, and what they are of (inputs/export.py)
    work: Path  # for whatever is needed meanwhile; gone when the run ends
    # says what is done, and of how many rows so far: `("reading versions", 1_000)`. Call it now and
    # then: it raises what ends a run that is to end, and is to go on
    told: Callable[[str, int], None]
    # called right before what cannot be taken back: it raises what ends a run that is to end, and
    # from there on nothing does
    publishing: Callable[[], None]
