"""A command whose `--help` ends with examples, shown as they are written. Django module."""

from argparse import RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand


class ExamplesCommand(BaseCommand):
    """`examples` is what `--help` ends with."""

    examples: str

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> Any:
        shape = {"formatter_class": RawDescriptionHelpFormatter, "epilog": self.examples}
        return super().create_parser(prog_name, subcommand, **{**shape, **options})
