"""`manage.py sparkjob NAME`: run a job now, or list its runs. Django module."""

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
from registrations.match_index.builds.progress import Watch
from registrations.match_index.builds.turn import step_back
from registrations.match_index.format.builder import Progress
from sparkjobs.runs import rows
from sparkjobs.runs.cancellation import CANCELLED, StopSignal
from sparkjobs.runs.errors import RunUnderWay
from sparkjobs.runs.folders import folder_of
from sparkjobs.runs.jobs import JOBS
from sparkjobs.runs.params import check_params, parse_json_option, parse_value
from sparkjobs.runs.rows import COMMAND, Run, RunProgress, RunRequest
from sparkjobs.runs.run import RunnerSettings, RunObserver, perform
from sparkjobs.runs.selectors import list_runs

PROBLEMS = 3  # the exit status when an audit found some
_EXAMPLES = """examples:
  manage.py sparkjob --list
  manage.py sparkjob audit
  manage.py sparkjob audit --param zone=acme --param streams=orders,payments \\
      --param since=2026-11-01T00:00:00Z
  manage.py sparkjob backtest --param zone=default --param stream=orders \\
      --param language=predicate --param 'filter=(> total 100)'
  manage.py sparkjob retention --params '{"zone": "default"}'
  manage.py sparkjob history audit

exit status: 0 completed, 1 failed or cancelled, 3 an audit found problems
"""
_HISTORY = "history"


class Command(ExamplesCommand):
    examples = _EXAMPLES
    help = (
        "Spark jobs: audit, backtest, match_index, retention. The command runs a job now, while"
        " the hub goes on. See docs/jobs.md."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", choices=[*JOBS, _HISTORY], metavar="NAME", help=", ".join(JOBS)
        )
        parser.add_argument(
            "of", nargs="?", choices=list(JOBS), metavar="OF", help="after `history`: the job"
        )
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a parameter of the job; separate several names by commas",
        )
        parser.add_argument("--params", metavar="JSON", help="all parameters as one object")
        parser.add_argument("--list", action="store_true", help="list the jobs")

    def run_from_argv(self, argv: list[str]) -> None:
        step_back()
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
            self._say(f"  {kind.timetable.text() if kind.timetable else 'on request'}")

    def _history(self, job: str) -> None:
        found = list_runs(None, limits.JOB_RUNS_RETAINED, job=job)
        for run in found:
            words = filter(None, (run.state, run.verdict, _took(run), f"by {run.requested_by}"))
            text = run.summary or run.detail
            line = f"{run.id}  {run.requested_at:%Y-%m-%dT%H:%M:%S}Z  {' '.join(words)}  {text}"
            self._say(line.rstrip())
        if not found:
            self._say(f"No run of {job} is recorded.")

    def _perform(self, env: Env, request: RunRequest) -> Run:
        hub, stop, clock = RunnerSettings.of(env), StopSignal(), SystemClock()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.ask(CANCELLED))
        with blocking(hub.database_url, name="jobs") as connection:
            rows.interrupt_lapsed(connection)
            started = rows.start_now(connection, request)
            run = None if started is None else rows.find(connection, started)
        if run is None:
            raise RunUnderWay()
        with Watch(request.job, 0, clock, self._write, self.stdout.isatty()) as watch:

            def report(progress: RunProgress) -> None:
                watch.hear(_progress(progress))

            return perform(hub, run, RunObserver(stop, report, clock))

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
    """Parse the parameters of the command line. Raises CommandError, and the errors of
    `parse_json_option` and `parse_value`."""
    found = {} if whole is None else parse_json_option(whole, field="--params")
    if not isinstance(found, dict):
        raise CommandError('--params must be an object, such as {"zone": "default"}.')
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise CommandError(f"--param must be NAME=VALUE; {pair} has no `=`.")
        found[name] = parse_value(job, name, text)
    return found


def _owned(env: Env) -> Env:
    """Return the settings. Raises CommandError for another user than the data folder's owner: the
    hub could not replace files that root leaves."""
    data = Path(env.data)
    if not data.is_dir():
        raise CommandError(
            f"There is no data folder {data}: copy the line `export EVENTHUB_DATA=…` from the"
            " banner of the running hub (manage.py up)."
        )
    owner = data.stat().st_uid
    if os.geteuid() != owner:
        raise CommandError(
            f"The data folder {data} belongs to user {owner}: run this as that"
            " user, or let a worker do it: the console has a button, the API"
            " POST /v1/jobs/{job}/runs."
        )
    return env


def _progress(run: RunProgress) -> Progress:
    """Return the progress in rows while inputs are written, then in Spark's tasks."""
    if run.stages:
        stage = f"{run.phase}, stage {run.stages_done} of {run.stages}, tasks"
        return Progress(stage, run.tasks_done)
    return Progress(run.phase, run.rows_done)


def _took(run: Run) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    return f"{(run.ended_at - run.started_at).total_seconds():,.1f} s"
