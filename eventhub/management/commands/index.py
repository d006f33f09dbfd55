"""`manage.py index build|verify|show`: manage the match indexes of streams. Django module."""

import json
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
from eventhub.management.command import HubCommand, data_folder, require_owner
from eventhub.postgresql.connections import blocking
from registrations.match_index.builds import statements
from registrations.match_index.builds.api import MatchIndexSerializer
from registrations.match_index.builds.build import BuildOrder, build
from registrations.match_index.builds.builder_lock import builder_lock, lower_priority
from registrations.match_index.builds.progress import ProgressDisplay
from registrations.match_index.builds.status import (
    IndexStatus,
    builds_due,
    index_statuses,
    streams_to_show,
)
from registrations.match_index.epochs.folder import indexed
from registrations.match_index.epochs.verify import verify_stream

_HELP = {
    "build": "build indexes now: of the given stream; with --all, of every stream that has an index"
    " or is due for one; otherwise the requested and due ones, which workers also build",
    "verify": "read every byte, and compare with the database and with an index rebuilt from the"
    " tables; list the faults, and exit with 1 if there are any",
    "show": "list the streams that have an index, or are due for one",
}
_EXAMPLES = """examples:
  manage.py index show
  manage.py index show --json
  manage.py index build                           the requested and due ones
  manage.py index build --stream orders           now, in the zone `default`
  manage.py index build --all --full              all, from the tables
  manage.py index verify --stream orders --zone acme
"""
_COLUMNS = ("zone", "stream", "epoch", "registrations", "size", "built", "changed", "state")
_LEFT = ("zone", "stream", "built", "state")  # words; numbers are aligned right
_MIB = 1 << 20


class IndexSelection(NamedTuple):
    """The hub's data folder and database, and the selected streams."""

    env: Env
    data: Path
    stream: str | None
    zone: str | None
    all: bool


class Command(HubCommand):
    examples = _EXAMPLES
    help = (
        "Manage match indexes: files that speed up matching on streams with very many"
        " registrations. See docs/operations.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for name, text in _HELP.items():
            action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:])
            action.add_argument("--stream", metavar="NAME", help="only this stream")
            action.add_argument(
                "--zone",
                metavar="NAME",
                help="only this zone; with --stream the default is `default`",
            )
            if name == "build":
                action.add_argument(
                    "--all", action="store_true", help="also those that are not due"
                )
                action.add_argument(
                    "--full",
                    action="store_true",
                    help="build from the tables, not from the current index and the changes since",
                )
            if name == "show":
                action.add_argument("--json", action="store_true", help="print a JSON list")

    def run_from_argv(self, argv: list[str]) -> None:
        lower_priority()
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        env = read_env()
        named = (options["stream"], options["zone"], bool(options.get("all")))
        act = {"build": self._build, "verify": self._verify, "show": self._show}[options["action"]]
        try:
            act(IndexSelection(env, data_folder(), *named), options)
        except OSError as error:
            raise CommandError(str(error)) from error

    def _build(self, selection: IndexSelection, options: dict[str, Any]) -> None:
        route = "POST /v1/streams/{stream}/match-index"
        require_owner(selection.data, "build", route)
        with blocking(selection.env.database_direct_url, name="index builder") as connection:
            found = _chosen(connection, selection)
        able = [one for one in found if not one.refused]
        if selection.stream and not able:
            raise CommandError(found[0].refused)
        if not able:
            self.say(
                "No build is requested or due. Workers build an index for a stream from"
                f" {limits.INDEX_AUTO_MIN:,} registrations with an endpoint on."
            )
        failed = 0
        for standing in able:
            with self._reported(standing) as errors:
                self._build_one(selection, standing, full=options["full"])
            failed += len(errors)
        if failed:
            raise CommandError(f"Builds failed: {failed} of {len(able)}")

    @contextmanager
    def _reported(self, standing: IndexStatus) -> Iterator[list[str]]:
        """Report an error of one stream, add it to the list, and continue with the next stream."""
        errors: list[str] = []
        try:
            yield errors
        except BrokenPipeError:
            raise
        except (EventHubError, OSError) as error:
            errors.append(error.message if isinstance(error, EventHubError) else str(error))
            self.say(f"{_name(standing.stream)}: {errors[0]}")

    def _build_one(self, selection: IndexSelection, standing: IndexStatus, *, full: bool) -> None:
        url = selection.env.database_direct_url
        order = BuildOrder(url, selection.data, standing.stream.id, full)
        with builder_lock(selection.data, wait=False) as ours:
            if ours:
                return self._run(order, standing)
        with blocking(url, name="index builder") as connection:
            busy = ", ".join(_name(stream) for stream in statements.active(connection))
        self.say(f"Waiting for another builder{busy and f' of {busy}'}.")
        with builder_lock(selection.data, wait=True):
            return self._run(order, standing)

    def _run(self, order: BuildOrder, standing: IndexStatus) -> None:
        clock = SystemClock()
        began_s = clock.monotonic_s()
        expected = standing.state.ids + standing.state.changed_since
        terminal = self.stdout.isatty()
        with ProgressDisplay(
            _name(standing.stream), expected, clock, self.write, terminal
        ) as watch:
            made = build(order, watch.show)
        seconds = clock.monotonic_s() - began_s
        self.say(
            f"{_name(standing.stream)}: epoch {made.epoch}, versions: {made.ids:,}, entries:"
            f" {made.entries:,}, {made.bytes / _MIB:,.1f} MiB, {seconds:,.1f} s"
        )

    def _verify(self, selection: IndexSelection, options: dict[str, Any]) -> None:
        wrong = failed = 0
        there = indexed(selection.data)
        with blocking(selection.env.database_direct_url, name="index builder") as connection:
            found = _chosen(connection, selection._replace(all=True))
            found = [one for one in found if one.stream.id in there]
            if selection.stream and not found:
                raise CommandError(f"{selection.stream} has no match index.")
            for standing in found:
                with self._reported(standing) as errors:
                    lines = verify_stream(connection, selection.data, standing.stream.id)
                    self._say_verified(standing.stream, lines)
                    wrong += bool(lines)
                failed += len(errors)
        summary = f"Indexes: {len(found)}, faulty: {wrong}"
        if wrong or failed:
            raise CommandError(f"{summary}, not verified: {failed}")
        self.say(summary)

    def _say_verified(self, stream: statements.IndexStream, lines: list[str]) -> None:
        self.say(f"{_name(stream)}: {'FAULTY' if lines else 'ok'}")
        for line in lines:
            self.say(f"  {line}")
        if lines:
            options_text = f"--stream {stream.name} --zone {stream.zone}"
            self.say(f"  To rebuild it: manage.py index build --full {options_text}")

    def _show(self, selection: IndexSelection, options: dict[str, Any]) -> None:
        with blocking(selection.env.database_direct_url, name="index builder") as connection:
            found = _chosen(connection, selection._replace(all=True))
        if options["json"]:
            items = [
                {"zone": one.stream.zone, **MatchIndexSerializer.represent(one)} for one in found
            ]
            self.say(json.dumps(items, indent=1))
            return
        for line in _table(found):
            self.say(line)
        if selection.stream:
            self.say(found[0].refused or found[0].state.why)
        elif not found:
            self.say(
                "No stream has an index. Workers build one for a stream from"
                f" {limits.INDEX_AUTO_MIN:,} registrations with an endpoint on."
            )


def _chosen(connection: statements.Connection, selection: IndexSelection) -> list[IndexStatus]:
    """Return the selected streams. Raises CommandError for an unknown name."""
    zone = selection.zone or ("default" if selection.stream else None)
    zone_id = statements.zone_id(connection, zone) if zone else None
    if zone and zone_id is None:
        raise CommandError(f"There is no zone {zone}.")
    if selection.stream and zone_id is not None:
        found = streams.find_stream(connection, zone_id, selection.stream)
        if found is None:
            raise CommandError(f"The zone {zone} has no stream {selection.stream}.")
        return index_statuses(connection, selection.data, [found.id])
    which = streams_to_show if selection.all else builds_due
    ids = which(connection, selection.data)
    return [
        one
        for one in index_statuses(connection, selection.data, ids)
        if zone in (None, one.stream.zone)
    ]


def _name(stream: statements.IndexStream) -> str:
    return f"{stream.zone or '(hub)'}/{stream.name}"


def _table(found: list[IndexStatus]) -> list[str]:
    """Format a table with a heading; no lines if there are no rows."""
    cells = [_COLUMNS, *map(_cells, found)] if found else []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            f"{text:{'<' if name in _LEFT else '>'}{width}}"
            for name, text, width in zip(_COLUMNS, row, widths, strict=True)
        ).rstrip()
        for row in cells
    ]


def _cells(standing: IndexStatus) -> tuple[str, ...]:
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
