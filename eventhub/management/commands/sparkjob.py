"""`manage.py sparkjob NAME`: performs a job in this process, or lists its runs. Django module."""

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
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import CANCELLED, StopSignal
from sparkjobs.runs.errors import RunUnderWay
from sparkjobs.runs.execute import RunnerSettings, RunObserver, perform
from sparkjobs.runs.folders import folder_of
from sparkjobs.runs.jobs import JOBS
from sparkjobs.runs.params import check_params, parse_json_option, parse_value
from sparkjobs.runs.selectors import list_runs
from sparkjobs.runs.statements import COMMAND, Run, RunProgress, RunRequest

PROBLEMS = 3  # the exit status of an audit with findings
_EXAMPLES = """examples:
  manage.py sparkjob --list
  manage.py sparkjob audit
  manage.py sparkjob audit --param zone=acme --param streams=orders,payments \\
      --param since=2026-11-01T00:00:00Z
  manage.py sparkjob backtest --param zone=default --param stream=orders \\
      --param language=predicate --param 'filter=(> total 100)'
  manage.py sparkjob retention --params '{"zone": "default"}'
  manage.py sparkjob history audit

exit status: 0 completed, 1 failed or cancelled, 3 an audit with findings
"""
_HISTORY = "history"


class Command(ExamplesCommand):
    examples = _EXAMPLES
    help = (
        "Run a Spark job (audit, backtest, match_index, retention) in this process; the hub keeps"
        " running. See docs/jobs.md."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", choices=[*JOBS, _HISTORY], metavar="NAME", help=", ".join(JOBS)
        )
        parser.add_argument(
            "of",
            nargs="?",
            choices=list(JOBS),
            metavar="JOB",
            help="after `history`: the job to list",
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
        lower_priority()
        super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        name, of = options["name"], options["of"]
        if options["list"]:
            self._list()
            return
        if name is None or (name == _HISTORY) != (of is not None):
            raise CommandError(f"Name a job, or `history` and a job. Jobs: {', '.join(JOBS)}.")
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
        self._print_ended(env, ended)

    def _list(self) -> None:
        for kind in JOBS.values():
            self._print(kind.name)
            self._print(f"  {kind.about}")
            self._print(f"  {kind.schedule.text() if kind.schedule else 'on request'}")

    def _history(self, job: str) -> None:
        found = list_runs(None, limits.JOB_RUNS_RETAINED, job=job)
        for run in found:
            words = filter(None, (run.state, run.verdict, _took(run), f"by {run.requested_by}"))
            text = run.summary or run.detail
            line = f"{run.id}  {run.requested_at:%Y-%m-%dT%H:%M:%S}Z  {' '.join(words)}  {text}"
            self._print(line.rstrip())
        if not found:
            self._print(f"Runs of {job}: 0")

    def _perform(self, env: Env, requested: RunRequest) -> Run:
        settings, stop, clock = RunnerSettings.of(env), StopSignal(), SystemClock()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.request(CANCELLED))
        with blocking(settings.database_url, name="jobs") as connection:
            statements.interrupt_lapsed(connection)
            started = statements.start_now(connection, requested)
            run = None if started is None else statements.find(connection, started)
        if run is None:
            raise RunUnderWay()
        with ProgressDisplay(requested.job, 0, clock, self._write, self.stdout.isatty()) as watch:

            def report(progress: RunProgress) -> None:
                watch.show(_progress(progress))

            return perform(settings, run, RunObserver(stop, report, clock))

    def _print_ended(self, env: Env, run: Run) -> None:
        folder = folder_of(Path(env.data), run.job, run.id)
        if run.state != "completed":
            raise CommandError(f"{run.detail} ({run.state}: {run.reason}; log: {folder.log})")
        for name, figure in run.figures.items():
            self._print(f"  {name}: {f'{figure:,}' if isinstance(figure, int) else figure}")
        self._print(f"{run.summary} ({_took(run)}, {run.engine})")
        self._print(f"{folder.result}")
        if run.verdict == "problems":
            raise CommandError("The audit has findings.", returncode=PROBLEMS)

    def _print(self, line: str) -> None:
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def _given(job: str, pairs: list[str], whole: str | None) -> dict[str, Any]:
    """Parse the parameters of the command line. Raises CommandError and parsing errors."""
    found = {} if whole is None else parse_json_option(whole, field="--params")
    if not isinstance(found, dict):
        raise CommandError('--params must be a JSON object, such as {"zone": "default"}.')
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise CommandError(f"--param must be NAME=VALUE; {pair} has no `=`.")
        found[name] = parse_value(job, name, text)
    return found


def _owned(env: Env) -> Env:
    """Require the owner of the data folder; the hub could not replace root's files in it."""
    data = Path(env.data)
    if not data.is_dir():
        raise CommandError(
            f"The data folder {data} does not exist: copy the line `export EVENTHUB_DATA=…` from"
            " the banner of the running hub (manage.py up)."
        )
    owner = data.stat().st_uid
    if os.geteuid() != owner:
        raise CommandError(
            f"The data folder {data} belongs to the user with the id {owner}. Run this command as"
            " that user, or request the run from a worker: in the console, or with"
            " POST /v1/jobs/{job}/runs."
        )
    return env


def _progress(progress: RunProgress) -> BuildProgress:
    """Convert progress to one stage and count: exported rows, then Spark's tasks."""
    if progress.stages:
        stage = f"{progress.phase}, stage {progress.stages_done} of {progress.stages}, tasks"
        return BuildProgress(stage, progress.tasks_done)
    return BuildProgress(progress.phase, progress.rows_done)


def _took(run: Run) -> str:
    if run.started_at is None or run.ended_at is None:
        return ""
    return f"{(run.ended_at - run.started_at).total_seconds():,.1f} s"
