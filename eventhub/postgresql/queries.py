"""Named SQL statements in files: one name, one statement. Plain module."""

from collections.abc import Mapping
from pathlib import Path
from typing import LiteralString

_ROOT = Path(__file__).resolve().parents[2]  # of the packages
_MARK = "-- name: "


def load(file: str, filled: Mapping[str, str] | None = None) -> dict[str, LiteralString]:
    """Return the statements of a file by name.

    `file` is a path such as `delivery/sql/forward.sql`. `filled` has the texts of its `{name}`s.
    Comments are removed, because `%` in them would count as a parameter.
    """
    queries: dict[str, LiteralString] = {}
    for part in (_ROOT / file).read_text().split(_MARK)[1:]:
        name, _, text = part.partition("\n")
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
        query = "\n".join(lines).strip()
        queries[name.strip()] = query if filled is None else _filled(query, filled)
    return queries


def _filled(query: LiteralString, text: Mapping[str, str]) -> LiteralString:
    for name, part in text.items():
        query = query.replace(f"{{{name}}}", part)
    return query
