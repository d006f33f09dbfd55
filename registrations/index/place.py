"""Where in the data folder the match index of a stream is. Plain."""

from pathlib import Path


def index_root(data: Path, stream_id: int) -> Path:
    """The folder of docs/match-index.md; it need not be there."""
    return data / "indexes" / f"stream-{stream_id}"
