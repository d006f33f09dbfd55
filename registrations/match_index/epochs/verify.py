"""The verification of a stream's match index: its bytes, its manifest, and every version in it
against the tables. SQL module.

The tables have changed since; the barriers of changes tell what the epoch's snapshot certainly saw.
"""

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from eventhub.base import limits
from eventhub.postgresql.rows import cursor_of
from registrations.catalog import VersionQuery
from registrations.compiled_filter_cache import CompiledFilters
from registrations.match_index.epochs.epoch import Epoch, open_epoch
from registrations.match_index.epochs.facts import refusal
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.tables import (
    SQL,
    Connection,
    IndexableVersion,
    rows,
    snapshot,
    snapshot_of,
)
from registrations.match_index.format.builder import EpochPlan, build_columns
from registrations.match_index.format.columns import NOT, NUMBER, TEST, EntryCollector
from registrations.match_index.format.decode import columns_of
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged, NotIndexable
from registrations.match_index.format.index import open_base
from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS

_ROWS = 10_000  # looked up at once
_LINES_MAX = 100  # of each kind
_REASONS = {
    "form": "it has another form than this hub's",
    "stream": "it belongs to another stream",
    "history": "the database was restored since",
    "future": "it has changes that the database does not have yet",
    "purged": "versions that ended after it was built were deleted since",
}


def verify_stream(connection: Connection, data: Path, stream_id: int) -> list[str]:
    """Return the faults of the index, one per line; none if it is sound. A line about a version has
    its registration. Raises IndexNotUsed, OSError, psycopg.Error.
    """
    try:
        epoch = open_epoch(index_root(data, stream_id))
        epoch.base.verify()
    except (IndexAbsent, IndexDamaged, OSError) as error:
        return [str(error)]
    with snapshot(connection):
        moment = snapshot_of(connection, stream_id)
        reason = refusal(epoch.manifest, stream_id, moment)
        if reason is not None:
            return [f"Epoch {epoch.manifest.epoch} must not be used: {_REASONS[reason]}."]
        check = _Check(epoch)
        for row, began, ended in _bounded(connection, stream_id, epoch):
            check.take(row, began=began, ended=ended)
    return check.lines()


class _Check:
    """A comparison version by version, which also collects the columns of an independent build."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._refused = frozenset(epoch.facts.refused)
        self._lines: list[str] = []
        self._seen = array("q")
        self._gatherings = [EntryCollector(COLUMNS) for _ in epoch.columns]
        self._compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)

    def take(self, row: IndexableVersion, *, began: bool, ended: bool) -> None:
        """Compare a version. `began`, `ended`: whether the epoch's snapshot certainly saw it."""
        positions = self._epoch.base.positions_of(row.id)
        if not positions:
            is_left_out = ended and row.is_over(self._epoch.facts.after)
            if began and not is_left_out and row.id not in self._refused:
                self._say(row, "is not in the index")
            return
        self._seen.append(row.id)
        shard, dense = positions[0]
        found = {name: getattr(self._epoch.columns[shard], name)[dense] for name in COLUMNS}
        expected = dict(row.columns())
        if not ended and found["until"] == NEVER_ENDS:
            expected["until"] = NEVER_ENDS  # it ended later
        for name in COLUMNS:
            if found[name] != expected[name]:
                self._say(row, f"has {name} {found[name]}; in the tables it is {expected[name]}")
        try:
            specs = self._compiled.specs(row.language, row.filter_json)
            self._gatherings[shard].add(row.id, specs, found)
        except NotIndexable:
            self._say(row, "is in the index, which cannot store its filter")

    def lines(self) -> list[str]:
        seen = np.array(self._seen, np.int64)
        for columns in self._epoch.columns:
            ids = np.asarray(columns.ids)
            for position in np.flatnonzero(~np.isin(ids, seen)).tolist():
                named = f"{columns.registration[position]} (version {ids[position]})"
                self._lines.append(f"Registration {named} is in the index, and not in the tables.")
        for number in range(0 if self._lines else len(self._gatherings)):
            self._lines += self._postings(number)
        return self._lines[:_LINES_MAX]

    def _postings(self, number: int) -> list[str]:
        """Build a shard again from the tables, compare it, and release its collected columns."""
        shard = self._epoch.base.shards[number]
        columns = self._gatherings[number].drain()
        with _temporary_folder() as folder:
            build_columns(folder, [columns], EpochPlan(durable=False))
            del columns
            [again] = open_base(folder).shards
            altered = _altered(shard, again)
            wrong = _differing(shard, again) if altered else []
        named = [
            f"Registration {self._registration(id)} (version {id}) is not indexed as its filter"
            " requires."
            for id in wrong[:_LINES_MAX]
        ]
        if altered and not named:
            return [f"Sections of {shard.path.name} differ if rebuilt: {', '.join(altered)}."]
        return named

    def _registration(self, id: int) -> int:
        shard, dense = self._epoch.base.positions_of(id)[0]
        return self._epoch.columns[shard].registration[dense]

    def _say(self, row: IndexableVersion, what: str) -> None:
        self._lines.append(f"Registration {row.registration} (version {row.id}) {what}.")


class _SnapshotBounds(NamedTuple):
    """Whether a snapshot certainly saw a version start, and end."""

    id: int
    began: bool
    ended: bool


def _bounded(
    connection: Connection, stream_id: int, epoch: Epoch
) -> Iterator[tuple[IndexableVersion, bool, bool]]:
    """Yield all versions in the tables, and whether the snapshot saw them start and end."""
    found = rows(connection, VersionQuery(stream_id))
    while piece := list(islice(found, _ROWS)):
        values = {"xmin": str(epoch.facts.xmin), "versions": [row.id for row in piece]}
        found_seen = (
            cursor_of(connection, _SnapshotBounds).execute(SQL["bounds"], values).fetchall()
        )
        seen = {one.id: one for one in found_seen}
        for row in piece:
            yield row, seen[row.id].began, seen[row.id].ended


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Create a temporary folder. Raises OSError with its name."""
    with TemporaryDirectory(prefix="eventhub-verify-") as folder:
        try:
            yield Path(folder)
        except OSError as error:
            error.filename = error.filename or folder
            raise


def _altered(one: Shard, other: Shard) -> list[str]:
    """Return the sections that differ."""
    names = sorted(one.views.keys() | other.views.keys())
    return [name for name in names if one.views.get(name) != other.views.get(name)]


def _differing(one: Shard, other: Shard) -> list[int]:
    """Return the ids whose conjunctions differ, ascending."""
    here, there = _entries(one), _entries(other)
    return sorted(id for id in here.keys() | there.keys() if here.get(id) != there.get(id))


def _entries(shard: Shard) -> dict[int, int]:
    """Return for each id a hash of its conjunctions, equal for equal ones."""
    found: dict[int, int] = {}
    columns = columns_of(shard)
    offsets, words = columns.offsets.tolist(), columns.words.tolist()
    gates = [columns.gate_names[gate] for gate in columns.gates.tolist()]
    for at, id in enumerate(columns.ids.tolist()):
        named = (
            columns.tests[word & NUMBER]
            if word >= TEST
            else (bool(word & NOT), columns.keys[word & NUMBER])
            for word in words[offsets[at] : offsets[at + 1]]
        )
        found[id] = found.get(id, 0) + hash((gates[at], frozenset(named)))
    return found
