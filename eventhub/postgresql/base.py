"""Django's PostgreSQL backend, with a pool that returns no connection of a server that has died,
and with immediate foreign keys. Django module.
"""

from typing import Any

from django.db.backends.postgresql import base, operations, schema
from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool


class DatabaseOperations(operations.DatabaseOperations):
    def deferrable_sql(self) -> str:
        """Return nothing: Django's deferred keys would be checked at the commit, under the locks of
        heads, a hundred thousand times when a client is deleted.
        """
        return ""


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    sql_create_column_inline_fk = (
        "CONSTRAINT %(name)s REFERENCES %(to_table)s(%(to_column)s)%(deferrable)s"
    )
    sql_delete_fk = "ALTER TABLE %(table)s DROP CONSTRAINT %(name)s"

    def _create_like_index_sql(self, *_: Any, **__: Any) -> None:
        """Omit Django's second index of a text for `LIKE`, which no query uses."""


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
    SchemaEditorClass = DatabaseSchemaEditor

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        """Return a connection that works; if one is dead, check all idle ones at once.

        The pool's own check tests one after the other, with growing pauses: four dead ones take
        longer than a caller waits for a connection.
        """
        connection: Connection = super().get_new_connection(conn_params)
        try:
            ConnectionPool.check_connection(connection)
        except OperationalError:
            self.pool.putconn(connection)
            self.pool.check()
            return super().get_new_connection(conn_params)
        return connection
