"""`manage.py archive run|status|verify`: work on the archive, which holds sealed segments and
retired partitions of deliveries, attempts and listeners. Django module.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from delivery.partitions import retire
from delivery.partitions.archive import archived_rows
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env, read_env
from eventhub.eventlog.archive import catalog
from eventhub.eventlog.archive.archiver import ArchiveLeaseLost, ArchiveResult, open_archiver
from eventhub.eventlog.archive.catalog import ArchiveStatus, ArchiveTotals, SegmentFilter
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.verify import verify
from eventhub.eventlog.errors import ArchiveDamaged
from eventhub.management.command import HubCommand, require_archive
from eventhub.postgresql.connections import blocking

_HELP = {
    "run": "archive the sealed segments of streams with the policy `archive` now; workers do so"
    " every 60 s",
    "status": "print what waits, what is archived, and what failed and why",
    "verify": "read every byte of the archive and list each file that is missing, truncated,"
    " altered, or different from its record in the database",
}


class Command(HubCommand):
    help = (
        "Write, list and verify sealed segments in the archive (EVENTHUB_ARCHIVE_URL). See"
        " docs/archive.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for name, text in _HELP.items():
            action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:])
            action.add_argument("--stream", metavar="NAME", help="only streams of this name")
            if name != "status":
                action.add_argument("--segment", metavar="UUID", help="only this segment")

    def handle(self, *args: Any, **options: Any) -> None:
        env = read_env()
        choice = SegmentFilter(options["stream"], options.get("segment"))
        if options["action"] != "status":
            require_archive()
        action = {"run": self._run, "status": self._status, "verify": self._verify}
        try:
            action[options["action"]](env, choice)
        except ArchiveLeaseLost as error:
            raise CommandError(
                "Another archiver is at work; `manage.py archive status` prints its progress."
            ) from error

    def _run(self, env: Env, choice: SegmentFilter) -> None:
        with blocking(env.database_direct_url, name="archiver") as connection:
            waiting = catalog.status(connection, choice.stream).waiting
        self.say(f"{_totals(waiting)} wait" + (" in total" if choice.segment else ""))
        archived = failed = 0
        with open_archiver(env.archive_url, env.database_direct_url, SystemClock()) as archiver:
            for done in archiver.run(choice, retry_failed=True):
                archived += not done.reason
                failed += bool(done.reason)
                self.say(f"{archived + failed:>6}  {_line(done)}")
        self.say(f"{archived} segments archived" + (f", {failed} failed" if failed else ""))
        if failed:
            raise CommandError("Some segments could not be archived.")

    def _status(self, env: Env, choice: SegmentFilter) -> None:
        with blocking(env.database_direct_url, name="archiver") as connection:
            found = catalog.status(connection, choice.stream)
            lines = _lines(env, found)
            if choice.stream is None:
                lines += _partition_lines(connection)
        for line in lines:
            self.say(line)

    def _verify(self, env: Env, choice: SegmentFilter) -> None:
        folder = ArchiveFolder(env.archive_url)
        with blocking(env.database_direct_url, name="archiver") as connection:
            rows = catalog.archived_segments(connection, choice)
            manifests = retire.manifests(connection) if choice == SegmentFilter() else []
        size = problems = 0
        for number, verdict in enumerate(verify(folder, rows), 1):
            size += verdict.bytes
            problems += len(verdict.problems)
            row = verdict.row
            found = "".join(
                f"\n        {kind}: {path}: {why}" for kind, path, why in verdict.problems
            )
            segment = f"{row.stream} {row.first}-{row.last} {row.uuid}"
            self.say(f"{number:>6}/{len(rows)}  {segment} {found or 'good'}")
        for manifest in manifests:
            problem = _partition_problem(folder, manifest)
            problems += bool(problem)
            self.say(f"        {manifest} {problem or 'good'}")
        partitions = f", {len(manifests)} partitions" if manifests else ""
        self.say(f"{len(rows)} segments{partitions}, {size:,} bytes read, {problems} problems")
        if problems:
            raise CommandError("The archive has problems.")


def _lines(env: Env, found: ArchiveStatus) -> list[str]:
    lines = [f"archive   {env.archive_url or 'unknown: EVENTHUB_ARCHIVE_URL is not set'}"]
    lines.append(f"archived  {_totals(found.archived)}")
    lag = f", the oldest for {found.lag_s:,.0f} s" if found.waiting.segments else ""
    lines.append(f"waiting   {_totals(found.waiting)}{lag}")
    if found.waiting.segments and not env.archive_url:
        lines.append("          they stay in the database until a hub with an archive runs")
    lines.append(f"archiver  {'at work' if found.busy else 'not at work'}")
    lines += [
        f"failed    {failure.stream} {failure.segment} ({failure.attempts} attempts):"
        f" {failure.reason}: {failure.detail}"
        for failure in found.failures
    ]
    return lines


def _partition_lines(connection: retire.BlockingConnection) -> list[str]:
    lines = []
    for table, archived, rows, lost, lost_rows, waiting in retire.tallies(connection):
        line = f"{table:<10} {archived:,} partitions archived, {rows:,} rows"
        line += f"; {waiting:,} wait" if waiting else ""
        line += f"; {lost:,} dropped without archive, {lost_rows:,} rows" if lost else ""
        lines.append(line)
    return lines + [
        f"lost      {name} at {at:%Y-%m-%d %H:%M}, {rows:,} rows: {why}"
        for name, rows, at, why in retire.last_lost(connection)
    ]


def _partition_problem(folder: ArchiveFolder, manifest: str) -> str:
    """Read an archived partition; return the problem, empty if there is none."""
    try:
        for _ in archived_rows(folder, manifest):
            pass
    except ArchiveDamaged as error:
        return f"damaged: {error.message}"
    return ""


def _totals(found: ArchiveTotals) -> str:
    return f"{found.segments:,} segments, {found.events:,} events, {found.bytes:,} stored bytes"


def _line(done: ArchiveResult) -> str:
    segment = done.segment
    where = f"{segment.stream} {segment.first}-{segment.last} {segment.uuid}"
    if done.reason:
        return f"{where} FAILED {done.reason}: {done.detail}"
    return f"{where} {done.file_bytes:,} bytes"
