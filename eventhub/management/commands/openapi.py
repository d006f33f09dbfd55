"""Prints the OpenAPI document, always the same text for the same API, from which the console's
types are generated; with `--commands` the table of the command line's commands. Django module.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from eventhub.web.command_table import table_text
from eventhub.web.openapi import document_text


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--commands", action="store_true", help="print the table of commands")

    def handle(self, *args: Any, commands: bool, **options: Any) -> None:
        self.stdout.write(table_text() if commands else document_text(), ending="")
