"""Checks of a process before it starts: unusable settings, and a database of another version, end
it with a reason. Composition root. SQL module.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import psycopg

from eventhub.base import limits
from eventhub.base.env import Env, move_file_into_environment, refuse, require_env, unknown_names
from eventhub.base.logs import get_logger
from eventhub.postgresql import schema
from eventhub.postgresql.migration_forms import MigrationForm
from eventhub.postgresql.schema import MigrationName, OtherSchema
from registrations.endpoints.addresses import parse_allowed

log = get_logger(__name__)

CHECK_INTERVAL_S = 1.0  # while the database is unavailable
UNSIGNED = (
    "EVENTHUB_SECRET_KEY is not set, so anybody could sign connection tokens and read the secrets "
    "of endpoints. Set the same long random text for every process of this hub "
    "(`openssl rand -base64 48`); `manage.py up` generates one and stores it in its data folder."
)
# without REDIS_URL, see docs/operations.md
WORKS = "emit, listen, registrations, callbacks, retention of streams"
REFUSED = "transient streams, jobs, builds of match indexes, the timetable with archive and upkeep"


def settings_or_exit(*, secret: bool = True) -> Env:
    """Return the settings of a process that serves or works, or end it with the status EX_CONFIG
    and the reason on standard error.

    If the database is unavailable, a thread repeats the check until it answers.
    """
    env = require_env()
    if not env.database_url:
        refuse("DATABASE_URL is not set: copy the line `export DATABASE_URL=…` from the banner of "
               "the running hub (manage.py up), or set that of your own PostgreSQL.")  # fmt: skip
    if secret and not env.secret_key:
        refuse(UNSIGNED)
    exit_if_unusable(env)
    if not env.redis_url:
        log.warning("without_redis", works=WORKS, refused=REFUSED)
    move_file_into_environment()  # for the archiver, builders and jobs
    if not _check(env.database_url):
        threading.Thread(target=_check_until_answer, args=(env.database_url,), daemon=True).start()
    return env


def exit_if_unusable(env: Env) -> None:
    """End a process whose settings are valid but unusable; warn of unknown names."""
    if env.store_dir and not Path(env.store_dir).is_dir():
        refuse(
            f"EVENTHUB_STORE_DIR: {env.store_dir} is not a folder, so its disk cannot be monitored."
        )
    try:
        parse_allowed(env.callback_allow)
    except ValueError as error:
        refuse(str(error))
    for name in unknown_names(os.environ):
        log.warning("unknown_setting", name=name)


def require_schema(url: str, *, complete: bool = True) -> None:
    """Check the database's tables. Raises OtherSchema, and psycopg.OperationalError if the database
    is unavailable. Without `complete` an empty database is accepted.
    """
    ours = own_migrations()
    require = schema.require_complete if complete else schema.require_same
    with psycopg.connect(url, connect_timeout=limits.CONNECT_TIMEOUT_S) as connection:
        cursor = connection.cursor()
        found = schema.read(cursor, ours)
        schema.require_hub_tables(cursor, found)
        require(found, ours)


@cache
def own_migrations() -> Mapping[MigrationName, MigrationForm]:
    """Return the migrations of the version that is loaded: the files may be of another one, by
    which the hub's processes are about to be replaced.
    """
    return schema.migrations()


def _check(url: str) -> bool:
    """Check the database or end the process; return False if the database is unavailable."""
    try:
        require_schema(url)
    except OtherSchema as error:
        refuse(str(error))
    except psycopg.OperationalError:
        return False
    except psycopg.Error as error:
        sys.exit(_unusable(error))
    return True


def _unusable(error: psycopg.Error) -> str:
    return f"The database answers, but the hub cannot use it: {str(error).strip()}"


def _check_until_answer(url: str) -> None:
    """Repeat the check as `_check` does; a thread can only signal its process to end."""
    while True:
        try:
            require_schema(url)
            return
        except psycopg.OperationalError:
            time.sleep(CHECK_INTERVAL_S)
        except (OtherSchema, psycopg.Error) as error:
            message = error if isinstance(error, OtherSchema) else _unusable(error)
            sys.stderr.write(f"{message}\n")
            os.kill(os.getpid(), signal.SIGTERM)
            return
