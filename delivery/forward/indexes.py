"""The match indexes on the disk as one forwarder uses them: which epoch of a stream is there, and
whether it may be used. Plain module.

An index that cannot be used costs speed and memory, never a match: the tables have it all.
Concurrency contract: one event loop; files are opened in threads.
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
from registrations.match_index.format.manifest import NAME, Manifest

log = get_logger(__name__)

AFTER = "after"  # the stream stands before what the epoch has left out; it may pass
DAMAGED = "damaged"
OLDER = "older"  # than the epoch in use


class _Stamp(NamedTuple):
    """Of a manifest in the root; every build makes a file of its own."""

    inode: int
    changed_ns: int


class Indexes:
    """What this process saw of the indexes in a data folder."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._seen: dict[int, _Stamp | None] = {}  # by stream
        self._refused: dict[int, Manifest] = {}

    async def open(self, stream_id: int) -> Epoch | None:
        """The current epoch; None if there is none, or one that was refused before."""
        root = index_root(self._data, stream_id)
        self._seen[stream_id] = await asyncio.to_thread(_stamp, root)
        try:
            epoch = await asyncio.to_thread(_opened, root)
        except IndexAbsent:
            return None
        except (IndexDamaged, OSError) as error:
            code = DAMAGED if isinstance(error, IndexDamaged) else "unreadable"
            _tell(stream_id, code, detail=str(error))
            return None
        if self._refused.get(stream_id) == epoch.manifest:
            return None
        return epoch

    async def newer(self, stream_ids: Sequence[int]) -> set[int]:
        """Those of which another epoch came since their last `open`."""
        stamps = await asyncio.to_thread(_stamps, self._data, stream_ids)
        return {id for id, stamp in stamps.items() if stamp != self._seen.get(id)}

    def refuse(self, stream_id: int, epoch: Epoch, reason: str) -> None:
        """Use it never again, unless what speaks against it will pass."""
        if reason == AFTER:
            self.look_again(stream_id)
        else:
            self._refused[stream_id] = epoch.manifest
        if reason == DAMAGED:
            _mark(index_root(self._data, stream_id), epoch)
        _tell(stream_id, reason, epoch=epoch.manifest.epoch)

    def look_again(self, stream_id: int) -> None:
        """At what was there already: it could not be used, and now it may."""
        self._seen.pop(stream_id, None)

    def forget(self, stream_id: int) -> None:
        """Nobody asks for the stream any more."""
        self._seen.pop(stream_id, None)
        self._refused.pop(stream_id, None)


def _opened(root: Path) -> Epoch:
    """Read whole, because nothing that it says is compared with the tables later; a million are
    some 100 ms. Raises as `open_epoch`.
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


def _stamps(data: Path, stream_ids: Sequence[int]) -> dict[int, _Stamp]:
    """Of those that have an index."""
    found = {id: _stamp(index_root(data, id)) for id in stream_ids}
    return {id: stamp for id, stamp in found.items() if stamp is not None}


def _stamp(root: Path) -> _Stamp | None:
    try:
        found = (root / NAME).stat()
    except OSError:
        return None
    return _Stamp(found.st_ino, found.st_mtime_ns)


def _tell(stream_id: int, reason: str, **more: object) -> None:
    metrics.INDEX_REFUSED.labels(reason=reason).inc()
    log.warning("index_refused", stream=stream_id, reason=reason, **more)
