"""Loads the named queries of the folder sql/: one name, one statement, no SQL text among the code.
Plain.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import LiteralString

_FOLDER = Path(__file__).parent / "sql"  # the log's own
_MARK = "-- name: "


def load(
    file: str, folder: Path = _FOLDER, filled: Mapping[str, str] | None = None
) -> dict[str, LiteralString]:
    """The queries of one file by name. `filled`: text of our own for each `{name}` in them.

    Comments are dropped, because `%` in them would count as a parameter.
    """
    queries: dict[str, LiteralString] = {}
    for part in (folder / file).read_text().split(_MARK)[1:]:
        name, _, text = part.partition("\n")
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
        query = "\n".join(lines).strip()
        queries[name.strip()] = query if filled is None else _filled(query, filled)
    return queries


def _filled(query: LiteralString, text: Mapping[str, str]) -> LiteralString:
    return query.format_map(text)
