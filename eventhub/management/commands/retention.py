"""`manage.py retention plan|show|apply`: what may leave the database, by hand. Django module."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError

from eventhub.api.view import parse_number
from eventhub.base.env import read_env
from eventhub.base.errors import EventHubError
from eventhub.management.examples import ExamplesCommand
from eventhub.supervisor.command_env import NoDatabaseUrl, require_database
from sparkjobs.runs import services
from sparkjobs.runs.errors import UnknownRun
from sparkjobs.runs.jobs import RETENTION
from sparkjobs.runs.retention.apply import ActionOutcome
from sparkjobs.runs.retention.plan import PlannedAction
from sparkjobs.runs.rows import COMMAND, Run
from sparkjobs.runs.selectors import find_run
from sparkjobs.runs.services import ApplyOptions

_EXAMPLES = """examples:
  manage.py retention plan                                     the whole hub, by its policies
  manage.py retention plan --zone acme
  manage.py retention plan --zone acme --params '{"policies": {"orders": {"retain_age_s": 86400}}}'
  manage.py retention show 17                                  what the plan of run 17 wants done
  manage.py retention apply 17 --dry-run                       what would be done and refused now
  manage.py retention apply 17

A plan changes nothing. When it is carried out, each segment is looked at anew: what a hold, a
durable cursor or the archive keeps by then is refused, with the reason, and the rest is done.
"""
_WHY = {
    "hold": "the stream is under a hold",
    "needed": "a durable cursor has not passed it",
    "not_archived": "it is to be archived first",
    "open": "it is still written to",
    "no_archive": "this hub has no archive",
    "archive_damaged": "its file in the archive is damaged: archive it anew first",
    "archive_unavailable": "the archive does not answer",
    "archive_policy": "its stream is not archived by its policy",
    "gone": "it has left already, or moved on",
    "archived": "it is archived already",
}


class Command(ExamplesCommand):
    examples = _EXAMPLES
    help = (
        "Plans what the policies of streams let go, and carries a plan out. See docs/retention.md."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        plan = actions.add_parser("plan", help="plan here and now, as `manage.py sparkjob` does")
        plan.add_argument("--zone", metavar="NAME", help="only the streams of this zone")
        plan.add_argument("--params", metavar="JSON", help="the job's parameters (docs/jobs.md)")
        show = actions.add_parser("show", help="what a plan wants done, segment by segment")
        apply = actions.add_parser("apply", help="carry a plan out")
        for action in (show, apply):
            action.add_argument("run", metavar="RUN", help="the run that made the plan")
        apply.add_argument(
            "--dry-run", action="store_true", help="say what would be done now, and do nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        acts = {"plan": self._plan, "show": self._show, "apply": self._apply}
        try:
            require_database()
            acts[options["action"]](options)
        except NoDatabaseUrl as error:
            raise CommandError(str(error)) from error
        except EventHubError as error:
            raise CommandError(error.message) from error

    def _plan(self, options: dict[str, Any]) -> None:
        zone, params = options["zone"], options["params"]
        given = [] if zone is None else [f"--param=zone={zone}"]
        given += [] if params is None else [f"--params={params}"]
        call_command("sparkjob", "retention", *given)

    def _show(self, options: dict[str, Any]) -> None:
        run = _run(options)
        for act in services.read_run_plan(read_env(), run):
            self._say(f"{act.action:<8} {_where(act)}: {act.reason}")
        self._say(run.summary)

    def _apply(self, options: dict[str, Any]) -> None:
        course = ApplyOptions(options["dry_run"], report=self._tell)
        outcomes, _ = services.apply_plan(
            env=read_env(), run=_run(options), by=COMMAND, course=course
        )
        counts = services.counts(outcomes)
        text = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        self._say(text + (" (nothing was done: --dry-run)" if course.dry_run else ""))

    def _tell(self, outcome: ActionOutcome) -> None:
        why = f": {_WHY.get(outcome.why, outcome.why)}" if outcome.why else ""
        act = outcome.act
        self._say(f"{act.action:<8} {outcome.outcome:<9} {_where(act)}{why}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _run(options: dict[str, Any]) -> Run:
    """Raises UnknownRun."""
    number = parse_number(options["run"], error=UnknownRun())
    return find_run(job=RETENTION.name, run=number)


def _where(act: PlannedAction) -> str:
    stream = f"{act.zone}/{act.stream}" if act.zone else act.stream
    return f"{stream} {act.first}-{act.last} {act.segment} {act.bytes:,} bytes"
