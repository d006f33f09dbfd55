"""`manage.py retention plan|show|apply`: retention plans. Django module."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command

from eventhub.api.resource import parse_number
from eventhub.base.env import read_env
from eventhub.management.command import HubCommand
from sparkjobs.runs import services
from sparkjobs.runs.errors import UnknownRun
from sparkjobs.runs.jobs import RETENTION
from sparkjobs.runs.retention.apply import ActionOutcome
from sparkjobs.runs.retention.plan import PlannedAction
from sparkjobs.runs.selectors import find_run
from sparkjobs.runs.services import ApplyOptions
from sparkjobs.runs.statements import Run

_EXAMPLES = """examples:
  manage.py retention plan                                     the whole hub, with its policies
  manage.py retention plan --zone acme
  manage.py retention plan --zone acme --params '{"policies": {"orders": {"retain_age_s": 86400}}}'
  manage.py retention show 17                                  the actions of run 17's plan
  manage.py retention apply 17 --dry-run                       what would be done or refused now
  manage.py retention apply 17

A plan changes nothing until it is applied. Each segment is then checked again: actions that a hold,
a durable cursor or the archive forbids are refused with the reason, and the others are done.
"""
_REASONS = {
    "hold": "the stream has a hold",
    "needed": "a durable cursor has not passed the segment",
    "not_archived": "the segment must be archived first",
    "open": "the segment is not sealed",
    "no_archive": "the hub has no archive",
    "archive_damaged": "the archived file is damaged: archive the segment again first",
    "archive_unavailable": "the archive is unavailable",
    "archive_policy": "the stream's policy does not archive it",
    "gone": "already dropped or moved",
    "archived": "already archived",
}


class Command(HubCommand):
    examples = _EXAMPLES
    help = "Plan what the streams' policies drop, and apply a plan. See docs/retention.md."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        plan = actions.add_parser("plan", help="make a plan in this process")
        plan.add_argument("--zone", metavar="NAME", help="only the streams of this zone")
        plan.add_argument("--params", metavar="JSON", help="the job's parameters (docs/jobs.md)")
        show = actions.add_parser("show", help="list a plan's actions by segment")
        apply = actions.add_parser("apply", help="apply a plan")
        for action in (show, apply):
            action.add_argument("run", metavar="RUN", help="the run that created the plan")
        apply.add_argument(
            "--dry-run", action="store_true", help="report what would be done, without doing it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        actions = {"plan": self._plan, "show": self._show, "apply": self._apply}
        actions[options["action"]](options)

    def _plan(self, options: dict[str, Any]) -> None:
        zone, params = options["zone"], options["params"]
        given = [] if zone is None else [f"--param=zone={zone}"]
        given += [] if params is None else [f"--params={params}"]
        call_command("sparkjob", "retention", *given)

    def _show(self, options: dict[str, Any]) -> None:
        run = _run(options)
        for action in services.read_run_plan(read_env(), run):
            self.say(f"{action.action:<8} {_segment(action)}: {action.reason}")
        self.say(run.summary)

    def _apply(self, options: dict[str, Any]) -> None:
        how = ApplyOptions(options["dry_run"], report=self._report)
        outcomes, _ = services.apply_plan(env=read_env(), run=_run(options), options=how)
        counts = services.counts(outcomes)
        text = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        self.say(text + (" (dry run: nothing was changed)" if how.dry_run else ""))

    def _report(self, outcome: ActionOutcome) -> None:
        reason = f": {_REASONS.get(outcome.reason, outcome.reason)}" if outcome.reason else ""
        action = outcome.action
        self.say(f"{action.action:<8} {outcome.outcome:<9} {_segment(action)}{reason}")


def _run(options: dict[str, Any]) -> Run:
    """Return the run that the options name. Raises UnknownRun."""
    number = parse_number(options["run"], error=UnknownRun())
    return find_run(job=RETENTION.name, run=number)


def _segment(action: PlannedAction) -> str:
    stream = f"{action.zone}/{action.stream}" if action.zone else action.stream
    return f"{stream} {action.first}-{action.last} {action.segment} {action.bytes:,} bytes"
