"""`manage.py backup FILE`: dump the hub's database while the hub runs. Django module."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from eventhub.base.env import read_env
from eventhub.management.command import HubCommand
from eventhub.supervisor import dump


class Command(HubCommand):
    help = (
        "Dump the hub's database into a file, as of one moment, while the hub runs."
        " `manage.py restore` restores it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a new file")

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path = options["file"]
        try:
            dump.write(read_env().database_direct_url, file)
        except dump.DumpFailed as error:
            raise CommandError(str(error)) from error
        size = file.stat().st_size
        self.stdout.write(f"{file}: {size} bytes; back up secret_key and the archive too")
