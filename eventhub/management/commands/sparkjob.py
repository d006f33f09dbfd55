"""`manage.py sparkjob NAME`: a run of a job, here and now; and what runs there were.
Django module.
"""

import os
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import OperationalError

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env, read_env
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.management.examples import ExamplesCommand
from eventhub.postgresql.connections import blocking
from eventhub.supervisor.command_env import NoDatabaseUrl, require_database
from registrations.match_index.builds.builder_lock import lower_priority
from registrations.match_index.builds.progress import ProgressDisplay
from registrations.match_index.format.builder import BuildProgress
from sparkjobs.runs import rows
from sparkjobs.runs.cancellation import CANCELLED, StopSignal
from sparkjobs.runs.errors import RunUnderWay
from sparkjobs.runs.folders import folder_of
from sparkjobs.runs.jobs import JOBS
from sparkjobs.runs.params import check_params, parse_json_option, parse_value
from sparkjobs.runs.rows import COMMAND, Run, RunProgress, RunRequest
from sparkjobs.runs.run import RunnerSettings, perform
from sparkjobs.runs.run import RunObserver as Watching
from sparkjobs.runs.selectors import list_runs

PROBLEMS = 3  # the status when an audit found some
_EXAMPLES = """examples:
  manage.py sparkjob --list
  manage.py sparkjob audit
  manage.py sparkjob audit --param zone=acme --param streams=orders,payments \\
      --param since=2026-11-01T00:00:00Z
  manage.py sparkjob backtest --param zone=default --param stream=orders \\
      --param language=predicate --param 'filter=(> total 100)'
  manage.py sparkjob retention --params '{"zone": "default"}'
  manage.py sparkjob history audit

statuses: 0 done, 1 it failed or was cancelled, 3 an audit found problems
"""
_HISTORY = "history"


class Command(ExamplesCommand):
    examples = _EXAMPLES
    help = (
        "Spark jobs: audit, backtest, match_index, retention. A run is done here and now, while"
        " the hub goes on. See docs/jobs.md."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", choices=[*JOBS, _HISTORY], metavar="NAME", help=", ".join(JOBS)
        )
        parser.add_argument(
            "of", nargs="?", choices=list(JOBS), metavar="OF", help="after `history`: of which job"
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="of the job; several names stand between commas",
        )
        parser.add_argument("--params", metavar="JSON", help="all of them as one object")
        parser.add_argument("--list", action="store_true", help="the jobs there are")

    def run_from_argv(self, argv: list[str]) -> None:
        lower_priority()
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        name, of = options["name"], options["of"]
        if options["list"]:
            self._list()
            return
        if name is None or (name == _HISTORY) != (of is not None):
            raise CommandError(f"Name a job, or `history` and a job: {', '.join(JOBS)}.")
        env = read_env()
        try:
            require_database()
            if of is not None:
                self._history(of)
                return
            given = _given(name, options["param"], options["params"])
            ended = self._perform(_owned(env), RunRequest(name, check_params(name, given), COMMAND))
        except NoDatabaseUrl as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:  # of Django's connection
            raise CommandError(DatabaseUnavailable().message) from error
        except EventHubError as error:
            where = f"{error.field}: " if error.field else ""
            raise CommandError(f"{where}{error.message}") from error
        self._say_ended(env, ended)

    def _list(self) -> None:
        for kind in JOBS.values():
            self._say(kind.name)
            self._say(f"  {kind.about}")
            self._say(f"  {kind.timetable.text() if kind.timetable else 'when it is asked for'}")

    def _history(self, job: str) -> None:
        found = list_runs(None, limits.JOB_RUNS_RETAINED, job=job)
        for run in found:
            words = filter(None, (run.state, run.verdict, _took(run), f"by {run.requested_by}"))
            said = run.summary or run.detail
            line = f"{run.id}  {run.requested_at:%Y-%m-%dT%H:%M:%S}Z  {' '.join(words)}  {said}"
            self._say(line.rstrip())
        if not found:
            self._say(f"There was no run of {job}.")

    def _perform(self, env: Env, asked: RunRequest) -> Run:
        hub, stop, clock = RunnerSettings.of(env), StopSignal(), SystemClock()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.ask(CANCELLED))
        with blocking(hub.database_url, name="jobs") as connection:
            rows.interrupt_lapsed(connection)
            begun = rows.start_now(connection, asked)
            run = None if begun is None else rows.find(connection, begun)
        if run is None:
            raise RunUnderWay()
        with ProgressDisplay(asked.job, 0, clock, self._write, self.stdout.isatty()) as watch:

            def hear(heard: RunProgress) -> None:
                watch.show(_progress(heard))

            return perform(hub, run, Watching(stop, hear, clock))

    def _say_ended(self, env: Env, run: Run) -> None:
        folder = folder_of(Path(env.data), run.job, run.id)
        if run.state != "completed":
            raise CommandError(f"{run.detail} ({run.state}: {run.reason}; its log: {folder.log})")
        for name, figure in run.figures.items():
            self._say(f"  {name}: {f'{figure:,}' if isinstance(figure, int) else figure}")
        self._say(f"{run.summary} ({_took(run)}, {run.engine})")
        self._say(f"{folder.result}")
        if run.verdict == "problems":
            raise CommandError("The audit found problems.", returncode=PROBLEMS)

    def _say(self, line: str) -> None:
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def _given(job: str, pairs: list[str], whole: str | None) -> dict[str, Any]:
    """The parameters as they were typed. Raises CommandError, and what json_of and typed raise."""
    found = {} if whole is None else parse_json_option(whole, field="--params")
    if not isinstance(found, dict):
        raise CommandError('--params is an object: {"zone": "default"}.')
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise CommandError(f"--param is NAME=VALUE, and there is no `=` in {pair}.")
        found[name] = parse_value(job, name, text)
    return found


def _owned(env: Env) -> Env:
    """What root leaves in the folder of another user, the hub could not replace."""
    data = Path(env.data)
    if not data.is_dir():
        raise CommandError(
            f"There is no data folder {data}: copy the line `export EVENTHUB_DATA=…` from the"
            " banner of the running hub (manage.py up)."
        )
    owner = data.stat().st_uid
    if os.geteuid() != owner:
        raise CommandError(
            f"The data folder {data} belongs to the user with the number {owner}: run this as that"
            " user, or let a worker do it: the console has a button, the API"
            " POST /v1/jobs/{job}/runs."
        )
    return env


def _progress(heard: RunProgress) -> BuildProgress:
    """Rows while inputs are written, then Spark's tasks."""
    if heard.stages:
        stage = f"{heard.phase}, stage {heard.stages_done} of {heard.stages}, tasks"
        return BuildProgress(stage, heard.tasks_done)
    return BuildProgress(heard.phase, heard.rows_done)


def _took(run: Run) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    return f"{(run.ended_at - run.started_at).total_seconds():,.1f} s"
