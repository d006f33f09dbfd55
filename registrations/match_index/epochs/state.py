"""The state of a stream's match index, and whether a build is due. SQL module.

A build is due when it is worth its cost (limits.py). Changes are counted by their barriers, so the
count costs as much as there are changes, and an inexact one at most as much as for a due build.
"""

from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.postgresql.rows import scalars
from registrations.match_index.epochs.epoch import Epoch, open_epoch
from registrations.match_index.epochs.errors import IndexNotUsed
from registrations.match_index.epochs.facts import StreamSnapshot, refusal
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.tables import SQL, Connection, snapshot_of
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.manifest import NAME
from registrations.matching.strategies import AUTO, INDEXED

_ALL = 1 << 62


class IndexState(NamedTuple):
    """The state of a stream's index. Without a usable one `epoch` is None, and `changed_since`
    counts all live versions with an endpoint.
    """

    epoch: int | None
    ids: int  # versions in it
    entries: int
    bytes: int
    built_at: int | None  # microseconds
    built_through_sequence: int | None  # of `system`
    changed_since: int  # versions that started or ended, or may have
    due: bool
    why: str  # the reason why it is due or not, for people


def state_of(
    connection: Connection, data: Path, stream_id: int, *, exact: bool = True
) -> IndexState:
    """Return the state of a stream's index; a deleted stream, or one that uses no index, has none.
    Without `exact`, versions are counted up to where a build is due. Raises psycopg.Error.
    """
    try:
        moment = snapshot_of(connection, stream_id)
    except IndexNotUsed as error:
        return _without(0, due=False, why=error.message)  # all zones have registrations on `system`
    root = index_root(data, stream_id)
    epoch, missing = _usable(root, stream_id, moment)
    if epoch is not None:
        return _with(connection, root, epoch, exact)
    threshold = limits.INDEX_AUTO_MIN if moment.strategy == AUTO else limits.INDEX_DELTA_MIN
    found = _count(connection, stream_id, _ALL if exact else threshold)
    why = f"{missing} Workers build one from {threshold:,} versions of registrations on."
    return _without(found, due=found >= threshold, why=why)


def due_streams(connection: Connection, data: Path) -> list[int]:
    """Return the streams whose index is due to be built, ascending. Raises psycopg.Error."""
    found = scalars(connection).execute(SQL["forwarded_streams"], (sorted(INDEXED),)).fetchall()
    return [id for id in found if state_of(connection, data, id, exact=False).due]


def _with(connection: Connection, root: Path, epoch: Epoch, exact: bool) -> IndexState:
    manifest = epoch.manifest
    threshold = max(limits.INDEX_DELTA_MIN, int(limits.INDEX_DELTA_SHARE_MAX * manifest.ids))
    values = {
        "stream_id": epoch.facts.stream,
        "xmin": str(epoch.facts.xmin),
        "bound": _ALL if exact else threshold,
    }
    changed = scalars(connection).execute(SQL["count_changed"], values).fetchone() or 0
    more = "" if exact or changed < threshold else " or more"
    try:
        built_at = (root / manifest.folder / NAME).stat().st_mtime_ns // 1_000
    except OSError:
        built_at = None  # a newer one was published just now
    return IndexState(
        manifest.epoch,
        manifest.ids,
        manifest.entries,
        manifest.bytes,
        built_at,
        manifest.built_through_sequence,
        changed,
        changed >= threshold,
        f"Versions changed since: {changed:,}{more}; workers rebuild it from {threshold:,} on.",
    )


def _without(versions: int, *, due: bool, why: str) -> IndexState:
    return IndexState(None, 0, 0, 0, None, None, versions, due, why)


def _count(connection: Connection, stream_id: int, bound: int) -> int:
    values = {"stream_id": stream_id, "bound": bound}
    return scalars(connection).execute(SQL["count"], values).fetchone() or 0


def _usable(root: Path, stream_id: int, moment: StreamSnapshot) -> tuple[Epoch | None, str]:
    """Return the epoch, or why there is none, without details of this machine."""
    try:
        epoch = open_epoch(root)
    except IndexAbsent:
        return None, "There is no index."
    except IndexDamaged:
        return None, "The index is damaged."
    except OSError:
        return None, "The index cannot be read."
    refused = refusal(epoch.manifest, stream_id, moment)
    if refused is not None:
        return None, f"The index cannot be used ({refused})."
    return epoch, ""
