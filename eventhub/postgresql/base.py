"""Django's database engine, whose pool hands out no connection that died with its server, and whose
foreign keys are checked at once. Django module.
"""

from typing import Any

from django.db.backends.postgresql import base, operations, schema
from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool


class DatabaseOperations(operations.DatabaseOperations):
    def deferrable_sql(self) -> str:
        """Django's own would be checked at the commit, under the heads' locks, a hundred thousand
        times when a client ends.
        """
        return ""


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    sql_create_column_inline_fk = (
        "CONSTRAINT %(name)s REFERENCES %(to_table)s(%(to_column)s)%(deferrable)s"
    )
    sql_delete_fk = "ALTER TABLE %(table)s DROP CONSTRAINT %(name)s"

    def _create_like_index_sql(self, *_: Any, **__: Any) -> None:
        """No second index of a text for `LIKE`, of which nothing makes use."""


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
    SchemaEditorClass = DatabaseSchemaEditor

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        """Where one is dead, all that are idle are asked at once.

        The pool's own check asks one after the other, and waits ever longer between them: with four
        dead ones that is longer than whoever asks for a connection waits.
        """
        connection: Connection = super().get_new_connection(conn_params)
        try:
            ConnectionPool.check_connection(connection)
        except OperationalError:
            self.pool.putconn(connection)
            self.pool.check()
            return super().get_new_connection(conn_params)
        return connection
