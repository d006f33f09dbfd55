"""Where the archive's files are: names that any filesystem takes and that sort by sequence.
Plain module.

zone=7/stream=orders/00000000000000000001-<segment UUID>.json             the manifest
zone=7/stream=orders/00000000000000000001-<segment UUID>-<16 hex>.parquet the file it names
_unfinished/                                                              being written
"""

import hashlib
from urllib.parse import quote

UNFINISHED = "_unfinished"  # readers of Parquet folders skip names that begin with `_`
_PART_BYTES_MAX = 200  # of a folder's name, which filesystems cut at 255
_DIGITS = 20  # of a sequence, so that names sort as numbers do


def stream_folder(zone_id: int | None, stream: str) -> str:
    """The folder of a stream. The hub-wide stream is of zone 0.

    A name is percent-encoded; one that is too long for a folder is cut, and a digest tells it from
    others.
    """
    name = quote(stream, safe="")
    if len(name) > _PART_BYTES_MAX:
        digest = hashlib.sha256(stream.encode()).hexdigest()[:32]
        name = f"{name[: _PART_BYTES_MAX - 40].rstrip('%')}~{digest}"
    return f"zone={zone_id or 0}/stream={name}"


def stem(zone_id: int | None, stream: str, segment: str, first: int) -> str:
    """What the names of all files of a segment begin with; `segment` is its UUID."""
    return f"{stream_folder(zone_id, stream)}/{first:0{_DIGITS}d}-{segment}"


def manifest_path(stem: str) -> str:
    return f"{stem}.json"


def file_path(stem: str, sha256: str) -> str:
    """Named by its content, so that two archivers never write different bytes to one name."""
    return f"{stem}-{sha256[:16]}.parquet"
