"""Django's database engine, whose pool hands out no connection that died with its server."""

from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
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
