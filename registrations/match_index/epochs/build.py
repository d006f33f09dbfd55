"""Builds the match index of a stream: of what the present epoch has and what changed since, or of
the tables alone. SQL module.

Both give the same bytes as long as there is one shard. Memory is that of one shard, whatever there
is (limits.py).
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from eventhub.base import limits
from registrations.catalog import ChangedVersionQuery, VersionQuery
from registrations.compiled import CompiledFilters
from registrations.match_index.epochs.epoch import Columns as EpochColumns
from registrations.match_index.epochs.epoch import Epoch, open_epoch
from registrations.match_index.epochs.errors import index_files
from registrations.match_index.epochs.facts import Facts, Moment, refusal
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.tables import (
    Connection,
    Row,
    moment_of,
    rows,
    settle,
    snapshot,
)
from registrations.match_index.format.builder import READ, Plan, Progress, build_columns
from registrations.match_index.format.columns import Columns, Gathering
from registrations.match_index.format.decode import columns_of
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged, NotIndexable
from registrations.match_index.format.manifest import Manifest
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS

__all__ = ["Progress", "build_stream"]

_TOLD_EVERY = 10_000  # versions between two words of progress


def build_stream(
    connection: Connection,
    data: Path,
    stream_id: int,
    *,
    full: bool = False,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Manifest:
    """The next epoch of a stream's index, of one snapshot, in the folder of the data; `full`: of
    the tables, also if the present epoch could be used. The connection is in no transaction.

    Raises IndexNotTaken, NotIndexable, IndexNotWritten, psycopg.Error; then the present epoch
    stays.
    """
    root = index_root(data, stream_id)
    with ExitStack() as reading:
        reading.enter_context(snapshot(connection))
        moment = moment_of(connection, stream_id)
        previous = None if full else _previous(root, stream_id, moment)
        build = _Build(moment, progress)

        def shards() -> Iterator[Columns]:
            if previous is None:
                wanted = VersionQuery(stream_id, after=moment.after)
                yield from build.gather(rows(connection, wanted))
            else:
                xmin, refused = str(previous.facts.xmin), list(previous.facts.refused)
                changed = ChangedVersionQuery(stream_id, xmin=xmin, others=refused)
                yield from build.go_on(previous, rows(connection, changed))
            reading.close()  # nobody's dead rows are kept while this is put in order
            settle(connection)
            yield build.last()

        # the refused ones are known when the last shard is; the manifest is written after it
        facts = Facts(stream_id, moment.history, moment.after, moment.xmin)
        stored = {**facts.stored(), "refused": build.refused}
        plan = Plan(moment.system, stored, progress=progress)
        with index_files():
            return build_columns(root, shards(), plan)


def _previous(root: Path, stream_id: int, moment: Moment) -> Epoch | None:
    """The present epoch, if what it has may be used; all of it is read, because what is altered in
    it would be sealed again.
    """
    try:
        epoch = open_epoch(root)
        if refusal(epoch.manifest, stream_id, moment) or epoch.facts.after > moment.after:
            return None
        epoch.base.verify()
    except (IndexAbsent, IndexDamaged, OSError):
        return None
    return epoch


class _Build:
    """What one build has gathered; `refused` are the versions that no index can hold, ascending."""

    def __init__(self, moment: Moment, progress: Callable[[Progress], None]) -> None:
        self.refused: list[int] = []
        self._moment = moment
        self._progress = progress
        self._gathering = Gathering(COLUMNS)
        self._compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
        self._read = 0

    def gather(self, found: Iterable[Row]) -> Iterator[Columns]:
        """All versions; shards that are full."""
        for row in found:
            self._add(row)
            if not self._has_room():
                yield self.last()

    def go_on(self, previous: Epoch, changed: Iterable[Row]) -> Iterator[Columns]:
        """What an epoch has and what changed since; all shards but the last. What still fits is put
        together, so that shards do not become many as versions leave them.
        """
        ended: dict[int, int] = {}
        for row in changed:
            if row.id not in previous:
                self._add(row)
                if not self._has_room():
                    yield self.last()
            elif row.until is not None:
                ended[row.id] = row.until
        for number, shard in enumerate(previous.base.shards):
            columns = _living(shard, previous.columns[number], ended, self._moment.after)
            self._tell(len(columns.ids))
            if self._has_room(len(columns.ids)):
                self._gathering.take(columns)
            else:
                yield columns

    def last(self) -> Columns:
        """What is gathered; nothing is then."""
        return self._gathering.drain()

    def _has_room(self, more: int = 1) -> bool:
        """Whether so many entries can be gathered still; those of one version are not parted."""
        return len(self._gathering) + more <= limits.INDEX_SHARD_ENTRIES_MAX

    def _add(self, row: Row) -> None:
        """Raises NotIndexable if too many are."""
        if row.is_over(self._moment.after):
            return
        try:
            specs = self._compiled.specs(row.language, row.filter_json)
            self._gathering.add(row.id, specs, row.columns())
        except NotIndexable:
            insort(self.refused, row.id)
            if len(self.refused) > limits.INDEX_REFUSED_MAX:
                raise
        if (self._read + 1) % _TOLD_EVERY == 0:
            self._tell(0)
        self._read += 1

    def _tell(self, more: int) -> None:
        self._read += more
        self._progress(Progress(READ, self._read))


def _living(shard: Shard, of: EpochColumns, ended: dict[int, int], after: int) -> Columns:
    """A shard's entries with the ends that they got, without those that are over."""
    until = np.array(of.until)
    if ended:
        numbers = np.array(sorted(ended), np.int64)
        ends = np.array([ended[number] for number in numbers.tolist()], np.int64)
        ids = np.asarray(of.ids)
        at = np.minimum(np.searchsorted(numbers, ids), len(numbers) - 1)
        has_ended = numbers[at] == ids
        until[has_ended] = ends[at[has_ended]]
    over = (until != NEVER_ENDS) & (until <= np.maximum(np.asarray(of.since), after))
    columns = columns_of(shard, np.flatnonzero(over).tolist())
    return columns._replace(extra={**columns.extra, "until": until[~over]})
