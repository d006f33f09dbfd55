"""`manage.py match_table`: the same events and filters under every strategy of matching, timed on
this machine. Needs no database. Django module.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registrations.matching.timing import MIXES, ResultsDiffer, table, time_all


class Command(BaseCommand):
    help = "Time the strategies of matching on the same work; they must find the same (OIF-30)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--mix", choices=[*MIXES], action="append", help="all if none is given")
        parser.add_argument("--filters", type=int, default=1_000)
        parser.add_argument("--events", type=int, default=500, help="different ones")
        parser.add_argument("--seconds", type=float, default=1.0, help="of each strategy")
        parser.add_argument("--seed", type=int, default=30)

    def handle(self, *args: Any, **options: Any) -> None:
        if min(options["filters"], options["events"]) < 1:
            raise CommandError("At least one filter and one event.")
        for mix in options["mix"] or MIXES:
            work = MIXES[mix](options["filters"], options["events"], options["seed"])
            try:
                timed = time_all(work, options["seconds"])
            except ResultsDiffer as error:
                raise CommandError(f"{mix}: {error}") from error
            self.stdout.write(f"{table(mix, work, timed)}\n\n")
