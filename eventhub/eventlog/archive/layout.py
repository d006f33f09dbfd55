"""The paths of the archive's files: names that any filesystem accepts and that sort by sequence.
Plain module.

zone=7/stream=orders/00000000000000000001-<segment UUID>.json             the manifest
zone=7/stream=orders/00000000000000000001-<segment UUID>-<16 hex>.parquet the file that it names
_unfinished/                                                              temporary files
"""

import hashlib
import re
from urllib.parse import quote

UNFINISHED = "_unfinished"  # readers of Parquet folders skip names that begin with `_`
_PART_BYTES_MAX = 200  # of a folder's name, which filesystems cut at 255
_DIGITS = 20  # of a sequence, so that names sort like numbers
_FILE = re.compile(r"[0-9]{20}-([0-9a-f-]{36})")


def stream_folder(zone_id: int | None, stream: str) -> str:
    """Return the folder of a stream. The hub-wide stream is in zone 0.

    A name is percent-encoded. One that is too long for a folder is cut and made unique by a digest.
    """
    name = quote(stream, safe="")
    if len(name) > _PART_BYTES_MAX:
        digest = hashlib.sha256(stream.encode()).hexdigest()[:32]
        name = f"{name[: _PART_BYTES_MAX - 40].rstrip('%')}~{digest}"
    return f"zone={zone_id or 0}/stream={name}"


def stem(zone_id: int | None, stream: str, segment: str, first: int) -> str:
    """Return the common beginning of the paths of a segment's files; `segment` is its UUID."""
    return f"{stream_folder(zone_id, stream)}/{first:0{_DIGITS}d}-{segment}"


def manifest_path(stem: str) -> str:
    return f"{stem}.json"


def file_path(stem: str, sha256: str) -> str:
    """Return the path of the Parquet file. It contains a digest of the content, so two archivers
    never write different bytes to one path.
    """
    return f"{stem}-{sha256[:16]}.parquet"


def segment_of(path: str) -> str:
    """Return the UUID of the segment that a file belongs to; "" if it is of none."""
    found = _FILE.match(path.rpartition("/")[2])
    return found[1] if found else ""
