"""What a command beside a running hub needs of its environment. SQL module."""

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
    """Raises NoArchiveUrl: another place than the hub's would be another archive."""
    if not read_env().archive_url:
        raise NoArchiveUrl(
            "EVENTHUB_ARCHIVE_URL is not set: copy the line `export EVENTHUB_ARCHIVE_URL=…` from "
            "the banner of the running hub (manage.py up), or set it as the hub has it."
        )


def require_database() -> None:
    """Raises NoDatabaseUrl, at once: without a URL the driver would look for a server somewhere,
    for seconds."""
    if not read_env().database_url:
        raise NoDatabaseUrl(
            "DATABASE_URL is not set: copy the line `export DATABASE_URL=…` from the banner of "
            "the running hub (manage.py up)."
        )


def require_answer() -> None:
    """Raises NoAnswer: a pool of connections keeps the server's reason to itself."""
    try:
        url = read_env().database_url
        psycopg.connect(url, connect_timeout=limits.CONNECT_TIMEOUT_S).close()
    except psycopg.OperationalError as error:
        raise NoAnswer(f"The database cannot be reached: {error}") from error


def refuse_other_schema() -> None:
    """End a command whose database another version of the hub made. That it is empty, or away, is
    left for the command to say."""
    url = read_env().database_url
    try:
        if url:
            require_schema(url, complete=False)
    except OtherSchema as error:
        refuse(str(error))
    except psycopg.Error:
        return
