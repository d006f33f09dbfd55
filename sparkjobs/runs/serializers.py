"""The shapes of bodies and answers about jobs. Django module."""

from typing import Any, get_args

from rest_framework import serializers

from eventhub.api.fields import MomentField, ObjectField
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.base import limits
from sparkjobs.runs.models import JobRun
from sparkjobs.runs.params import rendered_params
from sparkjobs.runs.retention.apply import Done
from sparkjobs.runs.rows import Run


class RunSerializer(AnswerSerializer):
    """A run of a job: asked for, under way, or over."""

    state = serializers.ChoiceField(
        choices=JobRun.State.choices,
        help_text="`waiting` for a worker; `interrupted`: its process has gone or was told to end.",
    )
    phase = serializers.CharField(help_text="What it is at; empty if it is not under way.")
    params = serializers.SerializerMethodField(help_text="As they were asked for.")
    verdict = serializers.ChoiceField(
        choices=["", "ok", "problems"], help_text="Of a job that judges, once it has completed."
    )
    figures = ObjectField(help_text="Numbers and texts by name.")

    class Meta:
        model = JobRun
        fields: tuple[str, ...] = (
            *("id", "job", "state", "requested_by", "requested_at", "attempt", "repeats"),
            *("not_before", "started_at", "ended_at", "phase", "rows_done", "stages_done"),
            *("stages", "tasks_done", "tasks", "params", "engine", "verdict", "summary"),
            *("figures", "reason", "detail", "result_bytes", "result_gone"),
        )
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "attempt": {
                "help_text": "1; more for a repeat of a run of the timetable that did not end well."
            },
            "repeats": {"help_text": "The first run of these attempts; null: this is the first."},
            "rows_done": {"help_text": "While inputs are written: of this table."},
            "result_gone": {
                "help_text": "Its files and details had to make room for newer ones; its figures"
                " are kept."
            },
        }

    def get_params(self, run: Run) -> dict[str, Any]:
        return rendered_params(run.params)


class FileSerializer(Serializer):
    name = serializers.CharField(help_text="Its path below `files/`.")
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    about = serializers.CharField(help_text="What is in it.")


class RunShownSerializer(RunSerializer):
    """With what it left, if it has completed."""

    details = ObjectField(help_text="What the job found, for screens; see docs/jobs.md.")
    files = FileSerializer(many=True)

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "details", "files")


class JobSerializer(Serializer):
    name = serializers.CharField()
    about = serializers.CharField(help_text="What it is for.")
    timetable = serializers.CharField(
        allow_null=True, help_text="When it is asked for by itself; null: never."
    )
    next_at = MomentField(allow_null=True)
    running = RunSerializer(allow_null=True, help_text="The run that is under way.")
    last = RunSerializer(allow_null=True, help_text="The last run that is over.")
    repeat = RunSerializer(
        allow_null=True, help_text="The repeat of a failed run of the timetable, if one waits."
    )


class SparkSerializer(Serializer):
    """As the process that answers finds it; workers may have another environment."""

    master = serializers.CharField()
    java = serializers.CharField(allow_null=True, help_text="Its version.")
    problem = serializers.CharField(help_text="Why jobs cannot run, in words; empty: they can.")


class JobsSerializer(Serializer):
    jobs = JobSerializer(many=True)
    spark = SparkSerializer()


class ParamsField(ObjectField):
    """An object; params.py checks what is in it, by job."""

    default_error_messages = {"invalid": "This is an object."}  # noqa: RUF012 (DRF's own form)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return dict(data)


class AskSerializer(Serializer):
    params = ParamsField(
        required=False,
        default=dict,
        help_text="audit: `zone`, `streams`, `since`, `until`; backtest: `zone`, `stream`,"
        " `language`, `filter`, `since`, `until`, `shown_max`; match_index: `zone`, `stream`,"
        " `engine`; retention: `zone`, `policies`. See docs/jobs.md.",
    )


class NothingSerializer(Serializer):
    """Nothing is to be said."""


class OutcomeSerializer(Serializer):
    """What came of one act of the plan."""

    zone = serializers.CharField(help_text="Empty for the hub's own stream.")
    stream = serializers.CharField()
    segment = serializers.CharField(help_text="Its UUID.")
    first = serializers.IntegerField(help_text="Sequence of its first event ...")
    last = serializers.IntegerField(help_text="... and of its last.")
    action = serializers.ChoiceField(choices=("drop", "archive", "compact"))
    bytes = serializers.IntegerField(help_text="Stored bytes of the segment.")
    outcome = serializers.ChoiceField(choices=get_args(Done))
    why = serializers.CharField(
        help_text="Why it was refused, or is so already: `hold`, `needed`, `not_archived`, `open`,"
        " `no_archive`, `archive_damaged`, `archive_unavailable`, `archive_policy`, `gone`,"
        " `archived`; empty if it was done."
    )


class AppliedSerializer(Serializer):
    run = serializers.IntegerField()
    done = serializers.IntegerField()
    refused = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="What the plan wants was so already.")
    left = serializers.IntegerField(
        help_text=f"Not looked at yet: a request ends after {limits.PLAN_APPLY_S_MAX:.0f} s; the"
        " next one goes on."
    )
    outcomes = OutcomeSerializer(
        many=True,
        help_text=f"At most {limits.PLAN_OUTCOMES_SHOWN_MAX}, refused ones first.",
    )
