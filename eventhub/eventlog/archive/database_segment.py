"""Reads the rows of a sealed segment as Arrow pages, over ADBC. SQL module.

Each page is a short transaction with one snapshot, which looks up the segment's partition and reads
the rows. So a segment may be moved between two pages, and no long snapshot delays VACUUM.
"""

from collections.abc import Iterator
from typing import Any, Self

import pyarrow as pa
from psycopg import sql

from eventhub.base import limits
from eventhub.eventlog.archive.catalog import DueSegment
from eventhub.eventlog.errors import SegmentUnreadable
from eventhub.postgresql import queries
from eventhub.postgresql.arrow import ArrowSnapshot

SQL = queries.load("eventhub/eventlog/sql/archive.sql")
_PAGE = pa.schema(
    [
        ("sequence", pa.int64()),
        ("appended_at", pa.timestamp("us", tz="UTC")),
        ("mask", pa.int64()),
        ("payload", pa.binary()),
    ]
)


class DatabaseSegmentReader:
    """A database connection for reading segments; one user at a time."""

    def __init__(self, url: str) -> None:
        """Connect. Raises DatabaseUnavailable."""
        self._snapshot = ArrowSnapshot(
            url, name="archive", statement_s_max=limits.ARCHIVE_STATEMENT_S_MAX
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._snapshot.close()

    def pages(self, segment: DueSegment) -> Iterator[pa.Table]:
        """Yield tables of (sequence, appended_at, mask as a signed number, payload), without a
        hole, from the segment's first sequence to its last.

        Raises SegmentUnreadable for a hole, DatabaseUnavailable.
        """
        after = segment.first - 1
        while after < segment.last:
            page = self._page(segment, after)
            missing = _first_missing(page.column("sequence"), after, segment.last)
            if missing is not None:
                raise SegmentUnreadable(
                    f"Event {missing} of segment {segment.uuid} is missing.",
                    segment=segment.uuid,
                    sequence=missing,
                )
            yield page
            after += page.num_rows

    def _page(self, segment: DueSegment, after: int) -> pa.Table:
        try:
            found = [*self._batches("partition_of", segment=segment.id)]
            if not found:
                raise SegmentUnreadable(f"Segment {segment.uuid} has left the database.")
            rows = self._batches(
                "page",
                partition_id=found[0].column(0)[0].as_py(),
                segment=segment.id,
                after=after,
                events_max=limits.ARCHIVE_ROW_GROUP_EVENTS_MAX,
                bytes_max=limits.ARCHIVE_ROW_GROUP_BYTES_MAX,
            )
            return pa.Table.from_batches(rows, _PAGE)
        finally:
            self._snapshot.begin_again()

    def _batches(self, name: str, **numbers: int) -> Iterator[pa.RecordBatch]:
        """Run a statement; yield no batch if there is no row."""
        return self._snapshot.batches(sql.SQL(SQL[name]).format(**numbers).as_string())


def _first_missing(sequences: Any, after: int, last: int) -> int | None:
    """Return the first missing sequence, or None; rows are ordered and unique."""
    if not len(sequences):
        return after + 1
    if (sequences[0].as_py(), sequences[-1].as_py()) == (after + 1, after + len(sequences)):
        return last + 1 if after + len(sequences) > last else None
    pairs = enumerate(sequences.to_pylist(), after + 1)
    return next(expected for expected, found in pairs if found != expected)
