"""`manage.py index build|verify|show`: manual work on match indexes. Django module."""

import json
import os
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.core.management.base import CommandError

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env, read_env
from eventhub.base.errors import EventHubError
from eventhub.event.json_codec import time_text
from eventhub.eventlog import streams
from eventhub.management.examples import ExamplesCommand
from eventhub.postgresql.connections import blocking
from eventhub.supervisor.command_env import NoDatabaseUrl, require_database
from registrations.match_index.builds import rows
from registrations.match_index.builds.api import MatchIndexSerializer
from registrations.match_index.builds.progress import Watch
from registrations.match_index.builds.run import Order, build
from registrations.match_index.builds.status import Standing, concerned, standings, wanted
from registrations.match_index.builds.turn import step_back, turn
from registrations.match_index.epochs.folder import indexed
from registrations.match_index.epochs.verify import verify_stream

_HELP = {
    "build": "build indexes now: of the stream named, with --all of every stream that has an index"
    " or is due for one, else of those requested or due, as workers do",
    "verify": "read every byte, and compare it with the database and with an index rebuilt from the"
    " tables; list what is wrong, and end with 1 if anything is",
    "show": "list streams that have an index, or are due for one",
}
_EXAMPLES = """examples:
  manage.py index show
  manage.py index show --json
  manage.py index build                           those requested or due
  manage.py index build --stream orders           now, in the zone `default`
  manage.py index build --all --full              all, from the tables
  manage.py index verify --stream orders --zone acme
"""
_COLUMNS = ("zone", "stream", "epoch", "registrations", "size", "built", "changed", "state")
_LEFT = ("zone", "stream", "built", "state")  # aligned to the left; numbers to the right
_MIB = 1 << 20


class Selection(NamedTuple):
    """The hub's data folder and database, and the streams selected."""

    env: Env
    data: Path
    stream: str | None
    zone: str | None
    all: bool


class Command(ExamplesCommand):
    examples = _EXAMPLES
    help = (
        "Match indexes: files that match the events of streams with very many registrations. See"
        " docs/operations.md."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for name, text in _HELP.items():
            action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:])
            action.add_argument("--stream", metavar="NAME", help="only the stream of this name")
            action.add_argument(
                "--zone", metavar="NAME", help="of this zone; default with --stream: `default`"
            )
            if name == "build":
                action.add_argument("--all", action="store_true", help="also those not due")
                action.add_argument(
                    "--full",
                    action="store_true",
                    help="from the tables, instead of from the present index and its changes",
                )
            if name == "show":
                action.add_argument("--json", action="store_true", help="print a JSON array")

    def run_from_argv(self, argv: list[str]) -> None:
        step_back()
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        env = read_env()
        named = (options["stream"], options["zone"], bool(options.get("all")))
        act = {"build": self._build, "verify": self._verify, "show": self._show}[options["action"]]
        try:
            require_database()
            act(Selection(env, _data(env), *named), options)
        except NoDatabaseUrl as error:
            raise CommandError(str(error)) from error
        except EventHubError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(str(error)) from error

    def _build(self, where: Selection, options: dict[str, Any]) -> None:
        _require_owner(where)
        with blocking(where.env.database_direct_url, name="index builder") as connection:
            found = _chosen(connection, where)
        able = [one for one in found if not one.refused]
        if where.stream and not able:
            raise CommandError(found[0].refused)
        if not able:
            self._say(
                "No index is requested or due. Workers build an index for a stream with at least"
                f" {limits.INDEX_AUTO_MIN:,} registrations with an endpoint."
            )
        failed = 0
        for standing in able:
            with self._reported(standing) as errors:
                self._build_one(where, standing, full=options["full"])
            failed += len(errors)
        if failed:
            raise CommandError(f"{len(able)} to build, {failed} failed")

    @contextmanager
    def _reported(self, standing: Standing) -> Iterator[list[str]]:
        """Report the error of one stream, so that the others are processed; yields a list that has
        the error afterwards.
        """
        errors: list[str] = []
        try:
            yield errors
        except BrokenPipeError:
            raise
        except (EventHubError, OSError) as error:
            errors.append(error.message if isinstance(error, EventHubError) else str(error))
            self._say(f"{_name(standing.stream)}: {errors[0]}")

    def _build_one(self, where: Selection, standing: Standing, *, full: bool) -> None:
        url = where.env.database_direct_url
        order = Order(url, where.data, standing.stream.id, full)
        with turn(where.data, wait=False) as ours:
            if ours:
                return self._run(order, standing)
        with blocking(url, name="index builder") as connection:
            busy = ", ".join(_name(stream) for stream in rows.at_work(connection))
        self._say(f"Another builder is at work{busy and f' on {busy}'}; waiting for it.")
        with turn(where.data, wait=True):
            return self._run(order, standing)

    def _run(self, order: Order, standing: Standing) -> None:
        clock = SystemClock()
        began_s = clock.monotonic_s()
        expected = standing.state.ids + standing.state.changed_since
        terminal = self.stdout.isatty()
        with Watch(_name(standing.stream), expected, clock, self._write, terminal) as watch:
            made = build(order, watch.hear)
        seconds = clock.monotonic_s() - began_s
        self._say(
            f"{_name(standing.stream)}: epoch {made.epoch}, versions: {made.ids:,}, entries:"
            f" {made.entries:,}, {made.bytes / _MIB:,.1f} MiB, {seconds:,.1f} s"
        )

    def _verify(self, where: Selection, options: dict[str, Any]) -> None:
        wrong = failed = 0
        there = indexed(where.data)
        with blocking(where.env.database_direct_url, name="index builder") as connection:
            found = _chosen(connection, where._replace(all=True))
            found = [one for one in found if one.stream.id in there]
            if where.stream and not found:
                raise CommandError(f"{where.stream} has no match index.")
            for standing in found:
                with self._reported(standing) as errors:
                    lines = verify_stream(connection, where.data, standing.stream.id)
                    self._say_verified(standing.stream, lines)
                    wrong += bool(lines)
                failed += len(errors)
        summary = f"{len(found)} verified, {wrong} wrong"
        if wrong or failed:
            raise CommandError(f"{summary}, {failed} could not be verified")
        self._say(summary)

    def _say_verified(self, stream: rows.Stream, lines: list[str]) -> None:
        self._say(f"{_name(stream)}: {'WRONG' if lines else 'good'}")
        for line in lines:
            self._say(f"  {line}")
        if lines:
            where = f"--stream {stream.name} --zone {stream.zone}"
            self._say(f"  Rebuild it with: manage.py index build --full {where}")

    def _show(self, where: Selection, options: dict[str, Any]) -> None:
        with blocking(where.env.database_direct_url, name="index builder") as connection:
            found = _chosen(connection, where._replace(all=True))
        if options["json"]:
            shown = [
                {"zone": one.stream.zone, **MatchIndexSerializer.represent(one)} for one in found
            ]
            self._say(json.dumps(shown, indent=1))
            return
        for line in _table(found):
            self._say(line)
        if where.stream:
            self._say(found[0].refused or found[0].state.why)
        elif not found:
            self._say(
                "No stream has an index. Workers build one for a stream with at least"
                f" {limits.INDEX_AUTO_MIN:,} registrations with an endpoint."
            )

    def _say(self, line: str) -> None:
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def _data(env: Env) -> Path:
    data = Path(env.data)
    if not data.is_dir():
        raise CommandError(
            f"There is no data folder {data}: copy the line `export EVENTHUB_DATA=…` from the"
            " banner of the running hub (manage.py up)."
        )
    return data


def _require_owner(where: Selection) -> None:
    """Raise CommandError for another user: the hub could not replace files that root leaves."""
    owner = where.data.stat().st_uid
    if os.geteuid() != owner:
        raise CommandError(
            f"The data folder {where.data} belongs to user {owner}: run this"
            " as that user, or let a worker do it: the console has a button, the API"
            " POST /v1/streams/{stream}/match-index."
        )


def _chosen(connection: rows.Connection, where: Selection) -> list[Standing]:
    """Return the streams selected. Raises CommandError for an unknown name."""
    zone = where.zone or ("default" if where.stream else None)
    zone_id = rows.zone_id(connection, zone) if zone else None
    if zone and zone_id is None:
        raise CommandError(f"There is no zone {zone}.")
    if where.stream and zone_id is not None:
        found = streams.find_stream(connection, zone_id, where.stream)
        if found is None:
            raise CommandError(f"The zone {zone} has no stream {where.stream}.")
        return standings(connection, where.data, [found.id])
    which = concerned if where.all else wanted
    ids = which(connection, where.data)
    return [
        one for one in standings(connection, where.data, ids) if zone in (None, one.stream.zone)
    ]


def _name(stream: rows.Stream) -> str:
    return f"{stream.zone or '(hub)'}/{stream.name}"


def _table(found: list[Standing]) -> list[str]:
    """Format aligned columns under their names; no lines without streams."""
    cells = [_COLUMNS, *map(_cells, found)] if found else []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            f"{text:{'<' if name in _LEFT else '>'}{width}}"
            for name, text, width in zip(_COLUMNS, row, widths, strict=True)
        ).rstrip()
        for row in cells
    ]


def _cells(standing: Standing) -> tuple[str, ...]:
    stream, state, build = standing
    index = ("-",) * 4
    if state.epoch:
        size = f"{state.bytes / _MIB:,.1f} MiB"
        built = time_text(state.built_at)[:19].replace("T", " ") if state.built_at else "just now"
        index = (str(state.epoch), f"{state.ids:,}", size, built)
    word = "due" if state.due else "current" if state.epoch else "none"
    if build is not None and build.state != "built":
        word = build.state
    return (stream.zone or "(hub)", stream.name, *index, f"{state.changed_since:,}", word)
