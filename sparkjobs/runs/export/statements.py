"""The statements of the export (export.sql) with their placeholders filled in. SQL module."""

from typing import Any

from psycopg import sql

from eventhub.postgresql import queries

_SQL = queries.load("sparkjobs/runs/sql/export.sql")


def render(name: str, **parts: Any) -> sql.Composed:
    """Fill a statement's placeholders: sql.Composable as it is, any other value as a literal."""
    composable = {
        key: part if isinstance(part, sql.Composable) else sql.Literal(part)
        for key, part in parts.items()
    }
    return sql.SQL(_SQL[name]).format(**composable)
