"""The errors of a stream's match index, part of the error tree of eventhub/base/errors.py. Plain
module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EEXIST, EISDIR, ENOSPC, ENOTDIR, ENOTEMPTY, EPERM, EROFS

from eventhub.base.errors import EventHubError


class IndexNotUsed(EventHubError):
    """The stream does not use a match index: registrations on `system` are matched in memory,
    transient streams have no callbacks, and only the strategies `auto` and `index` use one.
    """

    code = "match_index_not_used"
    status = 422


class IndexOutdated(EventHubError):
    """A newer index of the stream was published during the build; the newer one remains."""

    code = "match_index_outdated"
    status = 409


class IndexNotWritten(EventHubError):
    """The files of the match index cannot be read or written; the worker's log has the file and the
    error. Workers retry; meanwhile events are matched as before.
    """

    code = "match_index_not_written"


class IndexReadOnly(IndexNotWritten):
    """The folder `indexes` in the hub's data folder is not writable. Make it writable for the user
    that runs the workers. Workers retry; meanwhile events are matched as before.
    """

    code = "match_index_read_only"


class IndexDiskFull(IndexNotWritten):
    """The disk of the hub's data folder has no space for the match index. Free space, or move the
    folder `indexes` to a larger disk. Workers retry; meanwhile events are matched as before.
    """

    code = "match_index_disk_full"


class IndexObstructed(IndexNotWritten):
    """Another file or folder has the name of one of the match index, such as a folder called
    `manifest.json`. Remove it from the stream's folder in `indexes` of the hub's data folder.
    Workers retry; meanwhile events are matched as before.
    """

    code = "match_index_obstructed"


_KINDS: dict[int, type[IndexNotWritten]] = {
    **dict.fromkeys((EACCES, EPERM, EROFS), IndexReadOnly),
    **dict.fromkeys((ENOSPC, EDQUOT), IndexDiskFull),
    **dict.fromkeys((EISDIR, ENOTDIR, EEXIST, ENOTEMPTY), IndexObstructed),
}


@contextmanager
def index_files() -> Iterator[None]:
    """Convert an OSError in the block to IndexNotWritten, with the system's message for the
    operator.
    """
    try:
        yield
    except OSError as error:
        kind = _KINDS.get(error.errno or 0, IndexNotWritten)
        raise kind(f"{kind().message} ({error})") from error
