"""`manage.py sparkjob NAME`: performs a job in this process, or lists its runs. Django module."""

import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import Env, read_env
from eventhub.management.command import HubCommand, data_folder, require_owner
from eventhub.postgresql.connections import blocking
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


class Command(HubCommand):
    examples = _EXAMPLES
    help = (
        "Run a Spark job (audit, backtest, match_index, retention) in this process; the hub keeps"
        " running. See docs/jobs.md."
    )

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
        if of is not None:
            self._history(of)
            return
        params = check_params(name, _given(name, options["param"], options["params"]))
        require_owner(data_folder(), "run", "POST /v1/jobs/{job}/runs")
        env = read_env()
        self._print_ended(env, self._perform(env, RunRequest(name, params, COMMAND)))

    def _list(self) -> None:
        for kind in JOBS.values():
            self.say(kind.name)
            self.say(f"  {kind.about}")
            self.say(f"  {kind.schedule.text() if kind.schedule else 'on request'}")

    def _history(self, job: str) -> None:
        found = list_runs(None, limits.JOB_RUNS_RETAINED, job=job)
        for run in found:
            words = filter(None, (run.state, run.verdict, _took(run), f"by {run.requested_by}"))
            text = run.summary or run.detail
            line = f"{run.id}  {run.requested_at:%Y-%m-%dT%H:%M:%S}Z  {' '.join(words)}  {text}"
            self.say(line.rstrip())
        if not found:
            self.say(f"Runs of {job}: 0")

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
        with ProgressDisplay(requested.job, 0, clock, self.write, self.stdout.isatty()) as watch:

            def report(progress: RunProgress) -> None:
                watch.show(_progress(progress))

            return perform(settings, run, RunObserver(stop, report, clock))

    def _print_ended(self, env: Env, run: Run) -> None:
        folder = folder_of(Path(env.data), run.job, run.id)
        if run.state != "completed":
            raise CommandError(f"{run.detail} ({run.state}: {run.reason}; log: {folder.log})")
        for name, figure in run.figures.items():
            self.say(f"  {name}: {f'{figure:,}' if isinstance(figure, int) else figure}")
        self.say(f"{run.summary} ({_took(run)}, {run.engine})")
        self.say(f"{folder.result}")
        if run.verdict == "problems":
            raise CommandError("The audit has findings.", returncode=PROBLEMS)


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
