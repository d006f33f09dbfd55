"""`manage.py up`: run the whole hub on this machine, see docs/operations.md. Django module."""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from eventhub.base.env import read_env, refuse
from eventhub.supervisor.hub import UpOptions, run
from registrations.endpoints.addresses import parse_allowed

PORT_MAX = 65_535


class Command(BaseCommand):
    help = "Run the whole hub on this machine, with PostgreSQL and Redis. Ctrl-C stops it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        env = read_env()
        parser.add_argument(
            "--demo", action="store_true", help="with an operator, a client and real data"
        )
        parser.add_argument("--data", type=Path, default=Path(env.data), metavar="DIR")
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument(
            "--port", type=_whole(0, PORT_MAX), default=8000, help="0 takes a free one"
        )
        parser.add_argument("--web", type=_whole(1), default=2, metavar="N", help="web processes")
        parser.add_argument(
            "--forwarders", type=_whole(0), default=2, metavar="N", help="forwarder processes"
        )
        parser.add_argument(
            "--workers", type=_whole(0), default=2, metavar="N", help="worker processes"
        )
        parser.add_argument(
            "--connectors", type=_whole(0), default=1, metavar="N", help="connector processes"
        )
        parser.add_argument(
            "--restarts",
            dest="restarts_max",
            type=_whole(0),
            default=env.restarts_max,
            metavar="N",
            help="restarts of one process in a row before the hub stops; default: without limit",
        )
        parser.add_argument(
            "--start-timeout",
            dest="start_s_max",
            type=_whole(1),
            default=env.start_timeout_s,
            metavar="SECONDS",
            help="for each process to be ready, else the hub stops; default: without limit",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            parse_allowed(read_env().callback_allow)
        except ValueError as error:
            refuse(str(error))
        given = {name: options[name] for name in UpOptions._fields if name in options}
        sys.exit(run(UpOptions(**given)))


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a type for argparse: a whole number within bounds."""
    words = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise ArgumentTypeError(f"{text!r} is not a whole number {words}")
        return number

    return read
