"""The build of a stream's match index: from the current epoch and the changes since, or from the
tables alone. SQL module.

Both give the same bytes while there is one shard. Memory is that of one shard, at any size
(limits.py).
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from eventhub.base import limits
from registrations.catalog import ChangedVersionQuery, VersionQuery
from registrations.compiled_filter_cache import CompiledFilters
from registrations.match_index.epochs.epoch import Epoch, MappedVersionColumns, open_epoch
from registrations.match_index.epochs.errors import index_files
from registrations.match_index.epochs.facts import EpochFacts, StreamSnapshot, refusal
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.tables import (
    Connection,
    IndexableVersion,
    rows,
    settle,
    snapshot,
    snapshot_of,
)
from registrations.match_index.format.builder import READ, BuildProgress, EpochPlan, build_columns
from registrations.match_index.format.columns import EntryCollector, EntryColumns
from registrations.match_index.format.decode import columns_of
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged, NotIndexable
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.manifest import IndexManifest
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS

__all__ = ["BuildProgress", "build_stream"]

_PROGRESS_EVERY = 10_000  # versions between two reports of progress


def build_stream(
    connection: Connection,
    data: Path,
    stream_id: int,
    *,
    full: bool = False,
    progress: Callable[[BuildProgress], None] = lambda progress: None,
) -> IndexManifest:
    """Build the next epoch of a stream's index in the data folder, from one snapshot; `full`: from
    the tables, even if the current epoch could be used. The connection is in no transaction.

    Raises IndexNotUsed, NotIndexable, IndexNotWritten, psycopg.Error; then the current epoch
    remains.
    """
    root = index_root(data, stream_id)
    with ExitStack() as reading:
        reading.enter_context(snapshot(connection))
        moment = snapshot_of(connection, stream_id)
        previous = None if full else _previous(root, stream_id, moment)
        build = _Build(moment, progress)

        def shards() -> Iterator[EntryColumns]:
            if previous is None:
                query = VersionQuery(stream_id, after=moment.after)
                yield from build.gather(rows(connection, query))
            else:
                xmin, refused = str(previous.facts.xmin), list(previous.facts.refused)
                changed = ChangedVersionQuery(stream_id, xmin=xmin, others=refused)
                yield from build.merge(previous, rows(connection, changed))
            reading.close()  # end the snapshot, which retains dead rows, before the assembly
            settle(connection)
            yield build.last()

        # the refused versions are known after the last shard; then the manifest is written
        facts = EpochFacts(stream_id, moment.history, moment.after, moment.xmin)
        stored = {**facts.stored(), "refused": build.refused}
        plan = EpochPlan(moment.system, stored, progress=progress)
        with index_files():
            return build_columns(root, shards(), plan)


def _previous(root: Path, stream_id: int, moment: StreamSnapshot) -> Epoch | None:
    """Return the current epoch if it may be used. It is verified, because damaged data would get
    valid checksums in the next epoch.
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
    """The collected versions of one build; `refused`: those that no index can store, ascending."""

    def __init__(self, moment: StreamSnapshot, progress: Callable[[BuildProgress], None]) -> None:
        self.refused: list[int] = []
        self._moment = moment
        self._progress = progress
        self._gathering = EntryCollector(COLUMNS)
        self._compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
        self._read = 0

    def gather(self, found: Iterable[IndexableVersion]) -> Iterator[EntryColumns]:
        """Collect all versions; yield full shards."""
        for row in found:
            self._add(row)
            if not self._has_room():
                yield self.last()

    def merge(self, previous: Epoch, changed: Iterable[IndexableVersion]) -> Iterator[EntryColumns]:
        """Collect the versions of an epoch and the changes since; yield all shards but the last.
        Shards that fit together are merged, so that they do not become many as versions end.
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
            columns = _live_entries(shard, previous.columns[number], ended, self._moment.after)
            self._tell(len(columns.ids))
            if self._has_room(len(columns.ids)):
                self._gathering.take(columns)
            else:
                yield columns

    def last(self) -> EntryColumns:
        """Return the collected columns, and become empty."""
        return self._gathering.drain()

    def _has_room(self, more: int = 1) -> bool:
        """Return whether so many more entries fit; those of one version stay together."""
        return len(self._gathering) + more <= limits.INDEX_SHARD_ENTRIES_MAX

    def _add(self, row: IndexableVersion) -> None:
        """Add a version, or refuse it. Raises NotIndexable if too many are refused."""
        if row.is_over(self._moment.after):
            return
        try:
            specs = self._compiled.specs(row.language, row.filter_json)
            self._gathering.add(row.id, specs, row.columns())
        except NotIndexable:
            insort(self.refused, row.id)
            if len(self.refused) > limits.INDEX_REFUSED_MAX:
                raise
        if (self._read + 1) % _PROGRESS_EVERY == 0:
            self._tell(0)
        self._read += 1

    def _tell(self, more: int) -> None:
        self._read += more
        self._progress(BuildProgress(READ, self._read))


def _live_entries(
    shard: Shard, of: MappedVersionColumns, ended: dict[int, int], after: int
) -> EntryColumns:
    """Return a shard's entries with their new ends, without those that are over."""
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
