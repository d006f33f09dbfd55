"""Where in the data folder the match indexes of streams are. Plain module."""

from pathlib import Path

_STREAM = "stream-"


def indexes_root(data: Path) -> Path:
    """The folder of all of them; it need not be there."""
    return data / "indexes"


def index_root(data: Path, stream_id: int) -> Path:
    """The folder of docs/match-index.md; it need not be there."""
    return indexes_root(data) / f"{_STREAM}{stream_id}"


def indexed(data: Path) -> list[int]:
    """The streams that have an index, or a folder for one, ascending."""
    names = [folder.name.removeprefix(_STREAM) for folder in indexes_root(data).glob(f"{_STREAM}*")]
    return sorted(int(name) for name in names if name.isdecimal())
