"""Definitions as rows, in the caller's transaction. Sql module.

Zones are only numbers here. Nothing is announced and nothing is checked.
"""

from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub import limits
from eventhub.eventlog import queries
from eventhub.eventlog.rows import cursor_of, scalars
from eventhub.types.definitions import Definition

SQL = queries.load("types.sql", Path(__file__).parent / "sql")

Connection = psycopg.Connection[Any]


class Declared(NamedTuple):
    """A definition and when it was declared."""

    definition: Definition
    declared_at_us: int
    id: int = 0  # of the row; of the first version, where types are listed


def versions(connection: Connection, zone_id: int, domain: str, type: str) -> list[Declared]:
    """All versions of a type, the first first; empty if there is no such type."""
    values = (zone_id, domain, type)
    return cursor_of(connection, Declared).execute(SQL["versions"], values).fetchall()


def newest(connection: Connection, zone_id: int, after: int, count: int) -> list[Declared]:
    """The newest version of each type, in the order of their first declaration."""
    values = (zone_id, after, count)
    return cursor_of(connection, Declared).execute(SQL["newest"], values).fetchall()


def lineage(connection: Connection, zone_id: int, domain: str, type: str) -> list[str]:
    """The type and its parents, the nearest first; empty if there is no such type."""
    values = {
        "zone_id": zone_id,
        "domain": domain,
        "type": type,
        "depth_max": limits.TYPE_PARENTS_MAX + 1,
    }
    return scalars(connection).execute(SQL["parents"], values).fetchall()


def subtypes(connection: Connection, zone_id: int, domain: str, type: str) -> list[Definition]:
    """All versions of the types whose parent it is, and of those below them."""
    values = {"zone_id": zone_id, "domain": domain, "type": type}
    return cursor_of(connection, Definition).execute(SQL["subtypes"], values).fetchall()


def count(connection: Connection, zone_id: int) -> int:
    """All versions of all types."""
    [found] = scalars(connection).execute(SQL["count"], (zone_id,)).fetchall()
    return int(found)


def insert(connection: Connection, zone_id: int, definition: Definition) -> Declared:
    values = {"zone_id": zone_id, **definition._asdict()}
    [declared_at_us] = scalars(connection).execute(SQL["insert"], values).fetchall()
    return Declared(definition, declared_at_us)
