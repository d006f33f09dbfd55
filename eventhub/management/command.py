"""The base of the hub's management commands, and what they require of the hub. Django module."""

import os
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from eventhub.base import caller, limits
from eventhub.base.env import read_env, refuse
from eventhub.base.errors import EventHubError
from eventhub.postgresql.schema import OtherSchema
from eventhub.preflight import require_schema
from eventhub.supervisor.datafolder import Folder, FolderUnusable, read_secret_key, usable


class HubCommand(BaseCommand):
    """A command that works on a hub's database; errors of the hub end it with their message."""

    requires_system_checks = ()
    examples = ""  # at the end of `--help`
    acts_for_hub = False  # its changes are those of the hub itself, not of the command

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> Any:
        if self.examples:
            shape = {"formatter_class": RawDescriptionHelpFormatter, "epilog": self.examples}
            options = {**shape, **options}
        return super().create_parser(prog_name, subcommand, **options)

    def execute(self, *args: Any, **options: Any) -> Any:
        require_database()
        name = type(self).__module__.rpartition(".")[2]
        who = caller.HUB if self.acts_for_hub else caller.Caller("command", command=name)
        try:
            with caller.acting(who):
                return super().execute(*args, **options)
        except OtherSchema as error:
            raise CommandError(str(error), returncode=os.EX_CONFIG) from error
        except EventHubError as error:
            where = f"{error.field}: " if error.field else ""
            raise CommandError(f"{where}{error.message}") from error
        except OperationalError as error:  # of Django's connection
            raise CommandError(
                "The database of DATABASE_URL does not answer; is the hub running?"
            ) from error

    def say(self, line: str) -> None:
        self.write(f"{line}\n")

    def write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def require_archive() -> None:
    """Raise CommandError without the setting: another folder would be another archive."""
    if not read_env().archive_url:
        raise CommandError(
            "EVENTHUB_ARCHIVE_URL is not set: copy the line `export EVENTHUB_ARCHIVE_URL=…` from "
            "the banner of the running hub (manage.py up), or set it to the hub's own value."
        )


def require_database() -> None:
    """Raise at once without the setting: the driver would search for a server for seconds."""
    if not read_env().database_url:
        raise CommandError(
            "DATABASE_URL is not set: copy the line `export DATABASE_URL=…` from the banner of "
            "the running hub (manage.py up)."
        )


def require_answer() -> None:
    """Raise CommandError with the server's reason, which a pool of connections does not report."""
    try:
        url = read_env().database_url
        psycopg.connect(url, connect_timeout=limits.CONNECT_TIMEOUT_S).close()
    except psycopg.OperationalError as error:
        raise CommandError(f"The database cannot be reached: {error}") from error


def data_folder() -> Path:
    """Return the hub's data folder. Raises CommandError if it is missing."""
    data = Path(read_env().data)
    if not data.is_dir():
        raise CommandError(
            f"The data folder {data} does not exist: copy the line `export EVENTHUB_DATA=…` from"
            " the banner of the running hub (manage.py up)."
        )
    return data


def secret_key() -> str:
    """Return the key with which the hub signs: the setting, or that of its data folder. Raises
    CommandError without either: the hub would accept nothing that this command signs.
    """
    env = read_env()
    if env.secret_key:
        return env.secret_key
    folder = Folder(data_folder())
    if not folder.secret_key.exists():
        raise CommandError(
            f"EVENTHUB_SECRET_KEY is not set, and there is no {folder.secret_key}: set it to the"
            " hub's own value, or copy the line `export EVENTHUB_DATA=…` from the banner of the"
            " running hub (manage.py up)."
        )
    try:
        with usable(folder.root):
            return read_secret_key(folder)
    except FolderUnusable as error:
        raise CommandError(str(error)) from error


def require_owner(data: Path, work: str, route: str) -> None:
    """Raise CommandError unless this user owns the folder: the hub could not replace its files."""
    owner = data.stat().st_uid
    if os.geteuid() != owner:
        raise CommandError(
            f"The data folder {data} belongs to the user with the id {owner}. Run this command as"
            f" that user, or request the {work} from a worker: in the console, or with {route}."
        )


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
