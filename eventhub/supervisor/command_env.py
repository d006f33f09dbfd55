"""The environment that a command needs alongside a running hub. SQL module."""

import psycopg

from eventhub.base import limits
from eventhub.base.env import read_env, refuse
from eventhub.postgresql.schema import OtherSchema
from eventhub.preflight import require_schema


class NoDatabaseUrl(Exception):
    """DATABASE_URL is not set. `manage.py up` prints the line that sets it."""


class NoArchiveUrl(Exception):
    """EVENTHUB_ARCHIVE_URL is not set. `manage.py up` prints the line that sets it."""


class NoAnswer(Exception):
    """The database cannot be reached; the message has the server's reason."""


def require_archive() -> None:
    """Raise NoArchiveUrl without the setting: another folder would be another archive."""
    if not read_env().archive_url:
        raise NoArchiveUrl(
            "EVENTHUB_ARCHIVE_URL is not set: copy the line `export EVENTHUB_ARCHIVE_URL=…` from "
            "the banner of the running hub (manage.py up), or set it to the hub's own value."
        )


def require_database() -> None:
    """Raise NoDatabaseUrl without the setting, at once: the driver would search for a server for
    seconds.
    """
    if not read_env().database_url:
        raise NoDatabaseUrl(
            "DATABASE_URL is not set: copy the line `export DATABASE_URL=…` from the banner of "
            "the running hub (manage.py up)."
        )


def require_answer() -> None:
    """Raise NoAnswer with the server's reason, which a pool of connections does not report."""
    try:
        url = read_env().database_url
        psycopg.connect(url, connect_timeout=limits.CONNECT_TIMEOUT_S).close()
    except psycopg.OperationalError as error:
        raise NoAnswer(f"The database cannot be reached: {error}") from error


def refuse_other_schema() -> None:
    """End a command whose database was created by another version of the hub. The command itself
    reports an empty or unavailable database.
    """
    url = read_env().database_url
    try:
        if url:
            require_schema(url, complete=False)
    except OtherSchema as error:
        refuse(str(error))
    except psycopg.Error:
        return
