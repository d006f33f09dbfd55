"""The folders of match indexes in the data folder. Plain module."""

from pathlib import Path

_STREAM = "stream-"


def indexes_root(data: Path) -> Path:
    """Return the folder of all match indexes, which may not exist."""
    return data / "indexes"


def index_root(data: Path, stream_id: int) -> Path:
    """Return the folder of a stream's match index (docs/match-index.md), which may not exist."""
    return indexes_root(data) / f"{_STREAM}{stream_id}"


def indexed(data: Path) -> list[int]:
    """Return the streams that have an index, or a folder for one, ascending."""
    names = [folder.name.removeprefix(_STREAM) for folder in indexes_root(data).glob(f"{_STREAM}*")]
    return sorted(int(name) for name in names if name.isdecimal())
