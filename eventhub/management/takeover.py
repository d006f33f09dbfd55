"""The takeover of a database from before 0.1, whose tables were SQL files: the old tables move to
another schema, the migrations create those of this version, and the rows are copied. SQL module.
"""

from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import NamedTuple

from psycopg import sql

from eventhub.postgresql import queries, schema
from eventhub.postgresql.schema import SqlCursor

SQL = queries.load("eventhub/sql/takeover.sql")
_ASIDE = "before_0_1"  # the schema that holds the old tables meanwhile
# old names by the present ones; other tables and columns have retained their names
_TABLES = {
    "archive_attempts": "archive_tries",
    "event_partitions": "groups",
    "expensive_filters": "dear_filters",
    "idempotency_digests": "tokens",
    "listeners": "listens",
    "registration_owners": "sessions",
}
_COLUMNS = {
    "archive_attempts": {"attempts": "tries", "attempted_at": "tried_at"},
    "attempts": {"attempted_at": "at", "partition_id": "group_id"},
    "deliveries": {
        "partition_id": "group_id",
        "version_ids": "shape",
        "gap_reason": "gap_why",
    },
    "events": {"partition_id": "group_id"},
    "fanouts": {"partition_id": "group_id", "version_ids": "shapes"},
    "forwarders": {"last_seen_at": "seen_at"},
    "heads": {"partition_id": "group_id"},
    "idempotency_digests": {"digest": "token"},
    "index_builds": {
        "requested_at": "asked_at",
        "attempts": "tries",
        "started_at": "begun_at",
        "heartbeat_at": "heard_at",
    },
    "job_runs": {
        "requested_by": "asked_by",
        "requested_at": "asked_at",
        "started_at": "begun_at",
        "lease_expires_at": "lease_until",
        "cancel_requested_at": "cancel_asked_at",
    },
    "listeners": {
        "started_at": "at",
        "request_digest": "wish",
        "delivered_segment": "told_segment",
        "delivered_sequence": "told_sequence",
        "delivered_events": "told",
        "updated_at": "seen_at",
    },
    "log_state": {"current_partition": "current_group"},
    "producers": {"highest_number": "highest", "last_seen_at": "seen_at"},
    "retired_partitions": {"archive_path": "archive", "reason": "why"},
    "segments": {
        "partition_id": "group_id",
        "archive_path": "archive",
        "removed_at": "left_at",
        "removal_reason": "left_why",
    },
}
# columns whose values differ, or that are new without a default; `o` is the old row
_COMPUTED = {
    ("listeners", "transport"): "CASE o.door WHEN 'many' THEN 'unrecorded' ELSE o.door END",
    ("listeners", "end_reason"): """
        CASE o.why WHEN 'left' THEN 'disconnected' WHEN 'many' THEN 'unrecorded' ELSE o.why END""",
    ("retired_partitions", "parent"): """
        CASE o.parent WHEN 'listens' THEN 'listeners' ELSE o.parent END""",
    ("deliveries", "state"): "CASE WHEN o.state = 'dead' THEN 'dead_lettered' ELSE o.state END",
    ("deliveries", "zone_id"): """
        (SELECT zone_id FROM before_0_1.endpoints WHERE id = o.endpoint_id)""",
    ("registration_versions", "variable"): r"""
        CASE o.language WHEN 'ready'
             THEN substring(o.filter #>> '{}' FROM '^\s*\{?\s*([[:alpha:]_]\w*)\s*:(?!:)') END""",
    # Null unless the log was proved for the server in its present state, which a crash or a restore
    # changes. Then every stream gets a new segment at the next start: sequences may be reused.
    ("log_state", "life"): """
        CASE WHEN o.system_identifier IS NOT NULL AND NOT EXISTS (
            SELECT FROM before_0_1.incarnation i, pg_control_system() s
             WHERE i.system_identifier = s.system_identifier
               AND (i.system_identifier, i.timeline) = (o.system_identifier, o.timeline)
               AND i.timeline = ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
                                )::bit(32)::integer)
             THEN gen_random_uuid() END""",
}
# objects of the old hub and its Django in schema public, without partitions
_OLD_OBJECTS = {
    "tables": [
        "api_keys", "archive_tries", "archiver", "attempts", "auth_group",
        "auth_group_permissions", "auth_permission", "auth_user", "auth_user_groups",
        "auth_user_user_permissions", "barriers", "channels", "clients", "dear_filters",
        "deliveries", "django_content_type", "django_migrations", "django_session", "endpoints",
        "event_types", "events", "fanouts", "forwarders", "forwarding", "group_streams", "groups",
        "heads", "incarnation", "index_builds", "job_runs", "keyed_state", "lanes",
        "listen_interests", "listens", "log_state", "login_attempts", "producer_numbers",
        "producers", "registration_groups", "registration_versions", "registrations",
        "resource_changes", "retired_partitions", "segments", "sessions", "streams",
        "suspensions", "tokens", "zones",
    ],
    "sequences": ["listen_ids"],
    "functions": ["append_events", "prove_continuity", "roll_segments"],
}  # fmt: skip
_NAMED_MAX = 20  # in one message
# the log is proved again for this version; the old table `sessions` is `registration_owners` now
_NOT_COPIED = frozenset({"incarnation", "sessions"})


class Refused(Exception):
    """Nothing was changed; the message names the obstacle, and says what to do."""


class Moved(NamedTuple):
    """The number of rows copied into a table."""

    table: str
    rows: int


def require_unused(cursor: SqlCursor) -> None:
    """Raise Refused while other sessions are connected to the database."""
    cursor.execute(SQL["sessions"], [schema.LOCK])
    if found := [name for (name,) in cursor.fetchall()]:
        raise Refused(
            f"The database is in use by {_few(found)}. Nothing was changed. Stop the hub, and all"
            " other programs that are connected to the database."
        )


def require_only_hub(cursor: SqlCursor) -> None:
    """Raise Refused if schema public has objects that neither the old hub nor Django created, or if
    views in any schema depend on the hub's tables.
    """
    cursor.execute(SQL["foreign_objects"], _OLD_OBJECTS)
    if found := [name for (name,) in cursor.fetchall()]:
        raise Refused(
            f"The database has objects that are not the hub's and would be lost: {_few(found)}."
            " Nothing was changed. Move them to another database, or drop them and create them"
            " again afterwards: then tables and columns have other names."
        )


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more


def grantees(cursor: SqlCursor) -> list[str]:
    """Return the roles whose rights on the old tables are dropped with them."""
    cursor.execute(SQL["grantees"])
    return [name for (name,) in cursor.fetchall()]


def set_aside(cursor: SqlCursor, apps: list[str]) -> None:
    """Move the tables of the hub's apps to another schema, drop its functions and delete its
    migrations, so that those of this version start from nothing. Django's own tables stay.
    """
    aside = sql.Identifier(_ASIDE)
    cursor.execute(sql.SQL("CREATE SCHEMA {}").format(aside))
    cursor.execute("DELETE FROM django_migrations WHERE app = ANY(%s)", [apps])
    cursor.execute(SQL["relations"], ["public"])
    for name, is_sequence in cursor.fetchall():
        kind = sql.SQL("SEQUENCE" if is_sequence else "TABLE")
        moved = sql.SQL("ALTER {} public.{} SET SCHEMA {}")
        cursor.execute(moved.format(kind, sql.Identifier(name), aside))
    cursor.execute(SQL["functions"])
    for (function,) in cursor.fetchall():
        cursor.execute(sql.SQL("DROP FUNCTION {}").format(sql.SQL(function)))
    cursor.execute("DROP INDEX IF EXISTS operator_sessions")  # of Django's table; created again


def move(cursor: SqlCursor, report: Callable[[Moved], None]) -> None:
    """Fill the new tables from the old ones, and drop those. Calls `report` for each table."""
    cursor.execute(SQL["tables"])
    tables = list(TopologicalSorter(dict(cursor.fetchall())).static_order())
    every = sql.SQL(", ").join(map(sql.Identifier, tables))
    cursor.execute(sql.SQL("TRUNCATE {}").format(every))
    for table in tables:
        if table in _NOT_COPIED or not _columns(cursor, _old(table)):
            continue  # the table is new
        _create_partitions(cursor, table)
        report(Moved(table, _copy(cursor, table, table, _old(table))))
    cursor.execute(SQL["detached_partitions"], [_ASIDE])
    for name, parent in cursor.fetchall():
        report(Moved(name, _copy_detached(cursor, name, parent)))
    cursor.execute(SQL["endpoint_secrets"])
    _set_sequences(cursor, tables)
    _drop(cursor)


def _drop(cursor: SqlCursor) -> None:
    """Drop the old tables, and nothing else: an object that depends on them is an error."""
    cursor.execute(SQL["relations"], [_ASIDE])
    found = cursor.fetchall()
    for kind, is_sequence in (("TABLE", False), ("SEQUENCE", True)):
        names = [sql.Identifier(_ASIDE, name) for name, is_one in found if is_one == is_sequence]
        every = sql.SQL(", ").join(names)
        cursor.execute(sql.SQL("DROP {} {}").format(sql.SQL(kind), every))
    cursor.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(_ASIDE)))


def _new(table: str) -> sql.Identifier:
    return sql.Identifier("public", table)


def _old(table: str) -> sql.Identifier:
    return sql.Identifier(_ASIDE, _TABLES.get(table, table))


def _columns(cursor: SqlCursor, table: sql.Identifier) -> dict[str, str]:
    """Return the types of a table's columns by name; empty if the table does not exist."""
    cursor.execute(SQL["columns"], [table.as_string()])
    return dict(cursor.fetchall())


def _create_partitions(cursor: SqlCursor, table: str) -> None:
    old = _TABLES.get(table, table)
    names = {"old": old, "new": table, "parent": f"{_ASIDE}.{old}"}
    cursor.execute(SQL["partitions"], names)
    for name, bound in cursor.fetchall():
        statement = sql.SQL("CREATE TABLE {} PARTITION OF {} {}")
        parts = sql.Identifier(name), sql.Identifier(table), sql.SQL(bound)
        cursor.execute(statement.format(*parts))


def _copy_detached(cursor: SqlCursor, name: str, parent: str) -> int:
    """Copy a detached partition into a new table with the columns of its parent."""
    parent = "listeners" if parent == "listens" else parent
    new = name.replace("_g", "_p").replace("listens_", "listeners_")
    statement = sql.SQL("CREATE TABLE {} (LIKE {} INCLUDING ALL)")
    cursor.execute(statement.format(sql.Identifier(new), sql.Identifier(parent)))
    return _copy(cursor, parent, new, sql.Identifier(_ASIDE, name))


def _copy(cursor: SqlCursor, table: str, into: str, old: sql.Identifier) -> int:
    """Copy the rows of an old table into one that has the columns of `table`."""
    existing, renamed = _columns(cursor, old), _COLUMNS.get(table, {})
    values: dict[str, sql.Composable] = {}
    for name, kind in _columns(cursor, _new(table)).items():
        old_name = renamed.get(name, name)
        if computed := _COMPUTED.get((table, name)):
            values[name] = sql.SQL(computed)
        elif name in renamed or old_name in existing:
            values[name] = sql.Identifier("o", old_name)
            if kind == "timestamp with time zone":  # "never" was -infinity
                never = sql.SQL("CASE WHEN {0} = '-infinity' THEN 'epoch' ELSE {0} END")
                values[name] = never.format(values[name])
    comma = sql.SQL(", ")
    copied = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {} o").format(
        sql.Identifier(into),
        comma.join(map(sql.Identifier, values)),
        comma.join(values.values()),
        old,
    )
    cursor.execute(copied)
    cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(into)))
    [(rows,)] = cursor.fetchall()
    return int(rows)


def _set_sequences(cursor: SqlCursor, tables: list[str]) -> None:
    """Continue the ids after the old ones."""
    pairs = [("public.listener_ids", f"{_ASIDE}.listen_ids")]
    for table in tables:
        if all("id" in _columns(cursor, each) for each in (_new(table), _old(table))):
            names = [f"public.{table}", _old(table).as_string()]
            cursor.execute(
                "SELECT pg_get_serial_sequence(%s, 'id'), pg_get_serial_sequence(%s, 'id')", names
            )
            pairs += [pair for pair in cursor.fetchall() if all(pair)]
    for new, old in pairs:
        set_ = sql.SQL("SELECT setval({}, last_value, is_called) FROM {}")
        cursor.execute(set_.format(sql.Literal(new), sql.SQL(old)))
