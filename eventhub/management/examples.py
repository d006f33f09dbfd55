"""Management commands whose `--help` ends with unformatted examples. Django module."""

from argparse import RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand


class ExamplesCommand(BaseCommand):
    """A command with `examples` at the end of its `--help`."""

    examples: str

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> Any:
        shape = {"formatter_class": RawDescriptionHelpFormatter, "epilog": self.examples}
        return super().create_parser(prog_name, subcommand, **{**shape, **options})
