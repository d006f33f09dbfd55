"""Loads the named queries of the folder sql/: one name, one statement, no SQL text among the code.
Plain.
"""

from pathlib import Path
from typing import LiteralString

_FOLDER = Path(__file__).parent / "sql"  # the log's own
_MARK = "-- name: "


def load(file: str, folder: Path = _FOLDER) -> dict[str, LiteralString]:
    """The queries of one file by name.

    Comments are dropped, because `%` in them would count as a parameter.
    """
    queries: dict[str, LiteralString] = {}
    for part in (folder / file).read_text().split(_MARK)[1:]:
        name, _, text = part.partition("\n")
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
        queries[name.strip()] = "\n".join(lines).strip()
    return queries
