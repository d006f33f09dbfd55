"""`manage.py match_table`: time every matching strategy on the same events and filters, on this
machine. It needs no database. Django module.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from registrations.matching.timing import MIXES, ResultsDiffer, table, time_all


class Command(BaseCommand):
    help = "Time the matching strategies on the same work and check that their matches are equal."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--mix", choices=[*MIXES], action="append", help="default: all")
        parser.add_argument("--filters", type=int, default=1_000)
        parser.add_argument("--events", type=int, default=500, help="number of distinct events")
        parser.add_argument("--seconds", type=float, default=1.0, help="time for each strategy")
        parser.add_argument("--seed", type=int, default=30)

    def handle(self, *args: Any, **options: Any) -> None:
        if min(options["filters"], options["events"]) < 1:
            raise CommandError("Use at least one filter and one event.")
        for mix in options["mix"] or MIXES:
            work = MIXES[mix](options["filters"], options["events"], options["seed"])
            try:
                timed = time_all(work, options["seconds"])
            except ResultsDiffer as error:
                raise CommandError(f"{mix}: {error}") from error
            self.stdout.write(f"{table(mix, work, timed)}\n\n")
