"""Takes shards that were built elsewhere, of a stream's versions in one snapshot, as the next epoch
of its match index. SQL module.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from registrations.match_index.epochs.epoch import columns_of
from registrations.match_index.epochs.errors import IndexOutdated, index_files
from registrations.match_index.epochs.facts import Facts, Moment, refusal
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.tables import Connection, moment_of, settle
from registrations.match_index.format.builder import Plan, Progress, publish_files
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.manifest import Manifest, read_manifest
from registrations.match_index.format.shard import Shard


class Shards(NamedTuple):
    """What was built, of all versions that docs/match-index.md names."""

    stream_id: int
    moment: Moment  # of the snapshot in which the versions were read
    files: Sequence[Path]
    refused: tuple[int, ...] = ()  # versions that no index can hold, ascending


def publish_stream(
    connection: Connection,
    data: Path,
    shards: Shards,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Manifest:
    """The next epoch. One builder at a time calls this (building/turn.py); the connection is in no
    transaction.

    Raises IndexOutdated, IndexNotTaken, IndexDamaged, IndexNotWritten, OSError, psycopg.Error; then
    the present epoch stays.
    """
    stream_id, moment, files, refused = shards
    root = index_root(data, stream_id)
    if moment.history != moment_of(connection, stream_id).history:
        raise IndexOutdated("The database was restored since its registrations were read.")
    if _has_newer(root, stream_id, moment):
        raise IndexOutdated
    _check(files)
    settle(connection)
    facts = Facts(stream_id, moment.history, moment.after, moment.xmin, refused)
    with index_files():
        return publish_files(root, files, Plan(moment.system, facts.stored(), progress=progress))


def _has_newer(root: Path, stream_id: int, moment: Moment) -> bool:
    """Whether the present epoch was built of a later snapshot."""
    try:
        with index_files():
            return refusal(read_manifest(root), stream_id, moment) == "future"
    except (IndexAbsent, IndexDamaged):
        return False


def _check(files: Iterable[Path]) -> None:
    """That they have the columns, and no version twice."""
    seen = np.zeros(0, np.int64)
    for file in files:
        ids = np.unique(np.asarray(columns_of(Shard(file)).ids))
        if len(np.intersect1d(seen, ids, assume_unique=True)):
            raise IndexDamaged(f"{file.name} has versions that another shard has too.")
        seen = np.concatenate((seen, ids))
