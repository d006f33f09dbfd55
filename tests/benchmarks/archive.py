"""`archive`: reading pages from the archive against the same pages from the database, and the
archiver against writing the same rows to Parquet without decoding them.
"""

import json
import tempfile
from functools import cache

from tests.benchmarks.shape import Case, Measure, Pace, Reading
from tests.benchmarks.world import World


def cases(world: World, pace: Pace) -> list[Case]:
    place = tempfile.mkdtemp(prefix="archive-", dir=world.data)

    def child(*work: object) -> dict[str, float]:
        figures: dict[str, float] = json.loads(
            world.run_child("tests.benchmarks.archived", json.dumps([place, *work]))
        )
        return figures

    @cache
    def streams() -> dict[str, float]:
        """Return two streams, created on first use: one whose events are only in the archive, and
        one that has them in the database.
        """
        return child("prepare", pace.copy_rows)

    def measured(what: str, stream: str) -> Measure:
        def measure() -> Reading:
            figures = child(what, streams()[stream], pace.seconds)
            return Reading(figures.pop("per_s"), figures)

        return measure

    return [
        Case(
            name="archive_read",
            unit="events/s",
            product=measured("read", "archived"),
            baselines={"hot_read": measured("read", "hot")},
        ),
        Case(
            name="archive_write",
            unit="events/s",
            product=measured("write", "hot"),
            baselines={"adbc_to_parquet": measured("plain", "hot")},
        ),
    ]
