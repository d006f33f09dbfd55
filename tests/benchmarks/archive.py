"""`archive`: a page after the other from the archive against the same from the database; and the
archiver against the same rows to Parquet without looking into them.
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
        """Made when first needed: one stream whose events have left the database, one that has
        them.
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
