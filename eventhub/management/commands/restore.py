"""`manage.py restore FILE`: replace the hub's database by a dump, while the hub is stopped.
Django module.
"""

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventhub.base.env import move_file_into_environment, read_env
from eventhub.supervisor import dump
from eventhub.supervisor.datafolder import FolderUnusable
from eventhub.supervisor.embedded import embedded
from eventhub.supervisor.supervisor import HubFailed
from eventhub.supervisor.users import NoIdentity


class Command(BaseCommand):
    help = (
        "Replace the hub's database by a dump of `manage.py backup`. The hub must be stopped."
        " Without DATABASE_URL it is the embedded database of a data folder. All streams get new"
        " segments, so that listeners ahead of the dump get the error segment_mismatch."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--data", type=Path, help="the data folder; default EVENTHUB_DATA, var")

    def handle(self, *args: Any, **options: Any) -> None:
        move_file_into_environment()
        env = read_env()
        file: Path = options["file"].absolute()
        try:
            if env.database_url:
                self._restore(file, {})
                return
            with embedded(options["data"] or Path(env.data), lasting=True) as given:
                self._restore(file, given)
        except (dump.DumpFailed, FolderUnusable, HubFailed, NoIdentity) as error:
            raise CommandError(str(error)) from error

    def _restore(self, file: Path, given: dict[str, str]) -> None:
        env = {**os.environ, **given}
        url = env.get("DATABASE_DIRECT_URL") or env["DATABASE_URL"]
        dump.restore(url, file)
        restored = subprocess.run(  # noqa: S603 - this program, with the restored database
            [sys.executable, sys.argv[0], "restored"],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if restored.returncode:
            raise CommandError(
                f"{file} was restored. Run `manage.py restored` before you start the hub."
            )
        self.stdout.write(f"{file} was restored; {restored.stdout.strip()}")
