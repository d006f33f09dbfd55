"""The match indexes on disk as one forwarder uses them: the current epoch of a stream, and whether
it may be used. Plain module.

An unusable index costs speed and memory, never a match: the tables have everything. Concurrency
contract: one event loop; files are opened in threads.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from eventhub.base import metrics
from eventhub.base.logs import get_logger
from registrations.match_index.epochs.epoch import Epoch, mark_damaged, open_epoch
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.manifest import NAME, IndexManifest

log = get_logger(__name__)

AFTER = "after"  # temporary: the stream is still before versions that the epoch omits
DAMAGED = "damaged"
OLDER = "older"  # than the epoch in use


class _Stamp(NamedTuple):
    """The stamp of a manifest in the root; every build writes a new file."""

    inode: int
    changed_ns: int


class MatchIndexes:
    """The match indexes in a data folder, as this process last read them."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._stamps: dict[int, _Stamp | None] = {}  # by stream
        self._refused: dict[int, IndexManifest] = {}

    async def open(self, stream_id: int) -> Epoch | None:
        """Return the current epoch; None if there is none, or it was refused before."""
        root = index_root(self._data, stream_id)
        self._stamps[stream_id] = await asyncio.to_thread(_stamp, root)
        try:
            epoch = await asyncio.to_thread(_open_verified, root)
        except IndexAbsent:
            return None
        except (IndexDamaged, OSError) as error:
            code = DAMAGED if isinstance(error, IndexDamaged) else "unreadable"
            _report_refusal(stream_id, code, detail=str(error))
            return None
        if self._refused.get(stream_id) == epoch.manifest:
            return None
        return epoch

    async def newer(self, stream_ids: Sequence[int]) -> set[int]:
        """Return the streams with another epoch than at their last `open`."""
        stamps = await asyncio.to_thread(_current_stamps, self._data, stream_ids)
        return {id for id, stamp in stamps.items() if stamp != self._stamps.get(id)}

    def refuse(self, stream_id: int, epoch: Epoch, reason: str) -> None:
        """Refuse the epoch for good, unless the reason is temporary."""
        if reason == AFTER:
            self.retry(stream_id)
        else:
            self._refused[stream_id] = epoch.manifest
        if reason == DAMAGED:
            _mark(index_root(self._data, stream_id), epoch)
        _report_refusal(stream_id, reason, epoch=epoch.manifest.epoch)

    def retry(self, stream_id: int) -> None:
        """Try the present epoch again at the next search: it may be usable now."""
        self._stamps.pop(stream_id, None)

    def forget(self, stream_id: int) -> None:
        """Forget a stream that is no longer forwarded."""
        self._stamps.pop(stream_id, None)
        self._refused.pop(stream_id, None)


def _open_verified(root: Path) -> Epoch:
    """Open an epoch and verify all of it, because its content is not compared with the tables
    later; a million versions take some 100 ms. Raise what `open_epoch` raises.
    """
    epoch = open_epoch(root)
    try:
        epoch.base.verify()
    except IndexDamaged:
        _mark(root, epoch)
        raise
    _ = epoch.clients, epoch.groups
    return epoch


def _mark(root: Path, epoch: Epoch) -> None:
    with suppress(OSError):
        mark_damaged(root, epoch.manifest)


def _current_stamps(data: Path, stream_ids: Sequence[int]) -> dict[int, _Stamp]:
    """Return the stamps of those streams that have an index."""
    found = {id: _stamp(index_root(data, id)) for id in stream_ids}
    return {id: stamp for id, stamp in found.items() if stamp is not None}


def _stamp(root: Path) -> _Stamp | None:
    try:
        found = (root / NAME).stat()
    except OSError:
        return None
    return _Stamp(found.st_ino, found.st_mtime_ns)


def _report_refusal(stream_id: int, reason: str, **more: object) -> None:
    metrics.INDEX_REFUSED.labels(reason=reason).inc()
    log.warning("index_refused", stream=stream_id, reason=reason, **more)
