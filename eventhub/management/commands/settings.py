"""`manage.py settings`: print the settings of this hub and their origins. Django module."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from eventhub.base.config import SETTINGS
from eventhub.base.env import FILE, load
from eventhub.preflight import exit_if_unusable

_COLUMNS = ("variable", "name in the file", "origin", "value")


class Command(BaseCommand):
    help = (
        "Print each setting: its variable, its name in the file, the origin of its value, and the"
        " value; passwords and secrets are hidden. A variable of the environment takes precedence"
        " over the file that EVENTHUB_SETTINGS_FILE names, and the file over the default. Invalid"
        " settings end the command with status 78 and a line for each. docs/settings.md explains"
        " the settings. The command prints what this process reads: `manage.py up` sets more for"
        " the processes that it starts."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="check the settings, and that EVENTHUB_STORE_DIR exists, without printing them",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        loaded = load()
        if options["check"]:
            exit_if_unusable(loaded.env)
            self.stdout.write("The settings are valid.")
            return
        self.stdout.write(f"{FILE}: {loaded.file or '(not set)'}\n\n")
        rows = [_COLUMNS]
        for name, setting in SETTINGS.items():
            value = setting.rendered(getattr(loaded.env, name)) or "-"
            rows.append((setting.variable, name, loaded.origins[name], value))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())
