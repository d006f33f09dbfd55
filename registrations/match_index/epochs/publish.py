"""The publication of shards that were built elsewhere, from a stream's versions in one snapshot, as
the next epoch of its match index. SQL module.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from registrations.match_index.epochs.epoch import columns_of
from registrations.match_index.epochs.errors import IndexOutdated, index_files
from registrations.match_index.epochs.facts import EpochFacts, StreamSnapshot, refusal
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.tables import Connection, settle, snapshot_of
from registrations.match_index.format.builder import BuildProgress, EpochPlan, publish_files
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.manifest import IndexManifest, read_manifest
from registrations.match_index.format.shard import Shard


class BuiltShards(NamedTuple):
    """The built shards, of all versions that docs/match-index.md names."""

    stream_id: int
    moment: StreamSnapshot  # of the snapshot in which the versions were read
    files: Sequence[Path]
    refused: tuple[int, ...] = ()  # versions that no index can store, ascending


def publish_stream(
    connection: Connection,
    data: Path,
    shards: BuiltShards,
    progress: Callable[[BuildProgress], None] = lambda progress: None,
) -> IndexManifest:
    """Publish the shards as the next epoch. The caller holds the builder's lock (builder_lock.py);
    the connection is in no transaction.

    Raises IndexOutdated, IndexNotUsed, IndexDamaged, IndexNotWritten, OSError, psycopg.Error; then
    the current epoch remains.
    """
    stream_id, moment, files, refused = shards
    root = index_root(data, stream_id)
    if moment.history != snapshot_of(connection, stream_id).history:
        raise IndexOutdated("The database was restored since its registrations were read.")
    if _has_newer(root, stream_id, moment):
        raise IndexOutdated
    _check(files)
    settle(connection)
    facts = EpochFacts(stream_id, moment.history, moment.after, moment.xmin, refused)
    with index_files():
        return publish_files(
            root, files, EpochPlan(moment.system, facts.stored(), progress=progress)
        )


def _has_newer(root: Path, stream_id: int, moment: StreamSnapshot) -> bool:
    """Return whether the current epoch was built from a later snapshot."""
    try:
        with index_files():
            return refusal(read_manifest(root), stream_id, moment) == "future"
    except (IndexAbsent, IndexDamaged):
        return False


def _check(files: Iterable[Path]) -> None:
    """Check that the files have the columns, and no version twice."""
    seen = np.zeros(0, np.int64)
    for file in files:
        ids = np.unique(np.asarray(columns_of(Shard(file)).ids))
        if len(np.intersect1d(seen, ids, assume_unique=True)):
            raise IndexDamaged(f"{file.name} has versions that are also in another shard.")
        seen = np.concatenate((seen, ids))
