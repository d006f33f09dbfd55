"""Records the answers of the management API: the calls of `tests/acceptance/recorded`, made one
after the other on a hub of their own.

    python -m tests.acceptance.answers              record again what the test compares with
    python -m tests.acceptance.answers FILE         record into another file
    python -m tests.acceptance.answers FILE --bad   record the cases of the tests of bad input
    python -m tests.acceptance.answers --compare BEFORE AFTER
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import django

from tests.acceptance.recorded import comparing
from tests.acceptance.recorded.calls import CALLS
from tests.acceptance.recorded.comparing import Record
from tests.acceptance.recorded.stage import Stage
from tests.databases import drop_template
from tests.embedded import servers
from tests.live import LiveHub, live_hub

RECORDING = Path(__file__).parent / "recorded" / "management.jsonl"


class Recording(NamedTuple):
    """The answers of a hub on which nothing was done before, what in them is not documented, and
    those whose position is not that of their stream (EMC-09).
    """

    records: list[Record]
    undocumented: list[str]
    misplaced: list[str]


def recorded(hub: LiveHub) -> Recording:
    """Make all calls on a hub."""
    with closing(Stage(hub)) as stage:
        return Recording(list(stage.record(CALLS)), stage.undocumented, stage.misplaced)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.answers")
    parser.add_argument("file", nargs="?", type=Path, default=RECORDING, help="where to write")
    parser.add_argument("--bad", action="store_true", help="record the cases of bad input")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    options = parser.parse_args()
    if options.bad and options.file == RECORDING:
        parser.error("name the FILE for --bad; it is not what the test compares with")
    if options.compare:
        return _compare(*options.compare)
    with _hub() as hub:
        if options.bad:
            records = _recorded_bad(hub)
        else:
            records, undocumented, misplaced = recorded(hub)
            print("\n".join((*undocumented, *misplaced)))
    comparing.write(options.file, records)
    for record in records:
        if "missing" in record:
            print(f"No {record['missing']} in the answer to {record['line']}")
    print(f"{len(records)} answers in {options.file}")
    return 0


def _compare(before: Path, after: Path) -> int:
    old, new = comparing.read(before), comparing.read(after)
    found = comparing.differences(old, new)
    print("\n".join(found))
    print(f"{len(old)} calls before, {len(new)} after; {len(found)} differ")
    return bool(found)


def _recorded_bad(hub: LiveHub) -> list[Record]:
    """Return the answers to the cases of bad input. Its tests read Django's routes, so Django is
    set up first.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "eventhub.settings")
    django.setup()
    from tests.acceptance.recorded import bad

    return bad.recorded(hub)


@contextmanager
def _hub() -> Iterator[LiveHub]:
    with servers() as env, tempfile.TemporaryDirectory() as folder:
        os.environ.update(env)
        try:
            with live_hub(Path(folder), count=1) as hub:
                yield hub
        finally:
            drop_template()


if __name__ == "__main__":
    sys.exit(main())
