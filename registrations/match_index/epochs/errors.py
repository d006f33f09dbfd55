"""Errors of a stream's match index, part of the one tree of eventhub/base/errors.py.
Plain module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EEXIST, EISDIR, ENOSPC, ENOTDIR, ENOTEMPTY, EPERM, EROFS

from eventhub.base.errors import EventHubError


class IndexNotTaken(EventHubError):
    """The stream is not matched from an index: the registrations on `system` are matched in memory,
    nothing of a transient stream is called back, and other strategies than `auto` and `index` have
    none.
    """

    code = "match_index_not_taken"
    status = 422


class IndexOutdated(EventHubError):
    """A newer index of the stream was published while this one was being built; that one stays."""

    code = "match_index_outdated"
    status = 409


class IndexNotWritten(EventHubError):
    """The files of the match index cannot be read or written; the log of the worker names the file
    and the error. A worker tries again by itself, and meanwhile events are matched as before.
    """

    code = "match_index_not_written"


class IndexReadOnly(IndexNotWritten):
    """The folder `indexes` of the hub's data folder cannot be written. Make it writable for the
    user whom the workers run as, or build again once its file system is; a worker tries again by
    itself, and meanwhile events are matched as before.
    """

    code = "match_index_read_only"


class IndexDiskFull(IndexNotWritten):
    """The disk of the hub's data folder has no room for the match index. Make room, or move the
    folder `indexes` to a larger disk; a worker tries again by itself, and meanwhile events are
    matched as before.
    """

    code = "match_index_disk_full"


class IndexObstructed(IndexNotWritten):
    """Something else is in the place of a file or a folder of the match index, such as a folder
    called `manifest.json`. Remove it from the stream's folder below `indexes` of the hub's data
    folder; a worker tries again by itself, and meanwhile events are matched as before.
    """

    code = "match_index_obstructed"


_KINDS: dict[int, type[IndexNotWritten]] = {
    **dict.fromkeys((EACCES, EPERM, EROFS), IndexReadOnly),
    **dict.fromkeys((ENOSPC, EDQUOT), IndexDiskFull),
    **dict.fromkeys((EISDIR, ENOTDIR, EEXIST, ENOTEMPTY), IndexObstructed),
}


@contextmanager
def index_files() -> Iterator[None]:
    """Whatever the files of an index fail with in the block is raised as IndexNotWritten, with the
    system's own words for the operator.
    """
    try:
        yield
    except OSError as error:
        kind = _KINDS.get(error.errno or 0, IndexNotWritten)
        raise kind(f"{kind().message} ({error})") from error
