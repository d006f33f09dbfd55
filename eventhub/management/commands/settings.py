"""`manage.py settings`: what this hub is set to, and where each setting comes from.
Django module.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from eventhub.base.config import SETTINGS
from eventhub.base.env import FILE, load
from eventhub.preflight import require_fit

_COLUMNS = ("variable", "in the file", "from", "value")


class Command(BaseCommand):
    help = (
        "Print each setting: its variable, its name in the file, where its value comes from, and"
        " the value; passwords and secrets are hidden. A variable of the environment wins over"
        " the file that EVENTHUB_SETTINGS_FILE names, and the file over the default. Settings"
        " that cannot be read end the command with status 78 and a line for each."
        " docs/settings.md has what each setting means. It shows what this process reads:"
        " `manage.py up` fills in more for the parts that it starts."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="print no settings: only check them, also that EVENTHUB_STORE_DIR is there",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        loaded = load()
        if options["check"]:
            require_fit(loaded.env)
            self.stdout.write("The settings can be used.")
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
