"""The statements of tables.sql with their scope filled in. Sql module."""

from pathlib import Path
from typing import Any

from psycopg import sql

from eventhub.eventlog import queries

_SQL = queries.load("tables.sql", Path(__file__).parent)


def filled(name: str, **parts: Any) -> sql.Composed:
    """A statement whose braces are filled: by sql.Composable as it is, by anything else as a
    literal.
    """
    made = {
        key: part if isinstance(part, sql.Composable) else sql.Literal(part)
        for key, part in parts.items()
    }
    return sql.SQL(_SQL[name]).format(**made)
