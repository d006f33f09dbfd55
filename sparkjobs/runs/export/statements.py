"""The statements of tables.sql with their scope filled in. SQL module."""

from typing import Any

from psycopg import sql

from eventhub.postgresql import queries

_SQL = queries.load("sparkjobs/runs/export/tables.sql")


def render(name: str, **parts: Any) -> sql.Composed:
    """A statement whose braces are filled: by sql.Composable as it is, by anything else as a
    literal.
    """
    made = {
        key: part if isinstance(part, sql.Composable) else sql.Literal(part)
        for key, part in parts.items()
    }
    return sql.SQL(_SQL[name]).format(**made)
