"""Serializers of jobs, runs and plans. Django module."""

from typing import Any, get_args

from rest_framework import serializers

from eventhub.api.fields import MomentField, ObjectField
from eventhub.api.serializers import AnswerSerializer, Serializer
from eventhub.base import limits
from sparkjobs.runs.models import JobRun
from sparkjobs.runs.params import rendered_params
from sparkjobs.runs.retention.apply import Done
from sparkjobs.runs.statements import Run


class RunSerializer(AnswerSerializer):
    """A run of a job: waiting, running or ended."""

    state = serializers.ChoiceField(
        choices=JobRun.State.choices,
        help_text="`waiting`: for a worker; `interrupted`: its process died or was terminated.",
    )
    phase = serializers.CharField(help_text="The current phase; empty if the run is not running.")
    params = serializers.SerializerMethodField(help_text="The parameters as requested.")
    verdict = serializers.ChoiceField(
        choices=["", "ok", "problems"], help_text="Of a completed audit; empty for other jobs."
    )
    figures = ObjectField(help_text="Figures of the result by name.")

    class Meta:
        model = JobRun
        fields: tuple[str, ...] = (
            *("id", "job", "state", "requested_by", "requested_at", "attempt", "retry_of"),
            *("not_before", "started_at", "ended_at", "phase", "rows_done", "stages_done"),
            *("stages", "tasks_done", "tasks", "params", "engine", "verdict", "summary"),
            *("figures", "reason", "detail", "result_bytes", "result_deleted"),
        )
        extra_kwargs = {  # noqa: RUF012 (DRF's own form)
            "attempt": {"help_text": "1, or more for a retry of a failed scheduled run."},
            "retry_of": {"help_text": "The run of the first attempt; null: this is the first."},
            "rows_done": {"help_text": "Exported rows of the current table."},
            "result_deleted": {
                "help_text": "The files and details were deleted to make space for newer ones; the"
                " figures remain."
            },
        }

    def get_params(self, run: Run) -> dict[str, Any]:
        return rendered_params(run.params)


class FileSerializer(Serializer):
    name = serializers.CharField(help_text="The path below `files/`.")
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    about = serializers.CharField(help_text="A description of the contents.")


class RunDetailSerializer(RunSerializer):
    """A run with the details and files of its result."""

    details = ObjectField(help_text="Details of the result, by job; see docs/jobs.md.")
    files = FileSerializer(many=True)

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "details", "files")


class JobSerializer(Serializer):
    name = serializers.CharField()
    about = serializers.CharField(help_text="The purpose of the job.")
    schedule = serializers.CharField(
        allow_null=True, help_text="When the job runs; null: only on request."
    )
    next_at = MomentField(allow_null=True)
    running = RunSerializer(allow_null=True, help_text="The running run.")
    last = RunSerializer(allow_null=True, help_text="The last run that ended.")
    retry = RunSerializer(
        allow_null=True, help_text="The waiting retry of a failed scheduled run, if any."
    )


class SparkSerializer(Serializer):
    """Spark as the web process finds it; workers may have another environment."""

    master = serializers.CharField()
    java = serializers.CharField(allow_null=True, help_text="The version of Java.")
    problem = serializers.CharField(help_text="Why jobs cannot run; empty: they can.")


class JobsSerializer(Serializer):
    jobs = JobSerializer(many=True)
    spark = SparkSerializer()


class ParamsField(ObjectField):
    """An object of parameters, which params.py validates by job."""

    default_error_messages = {"invalid": "This must be an object."}  # noqa: RUF012 (DRF's own form)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return dict(data)


class RunRequestSerializer(Serializer):
    params = ParamsField(
        required=False,
        default=dict,
        help_text="audit: `zone`, `streams`, `since`, `until`; backtest: `zone`, `stream`,"
        " `language`, `filter`, `since`, `until`, `sample_max`, `engine`, or for a pattern `zone`,"
        " `streams`, `language`, `pattern`, `once`, `since`, `until`, `sample_max`, `engine`;"
        " match_index: `zone`, `stream`, `engine`; retention: `zone`, `policies`. See"
        " docs/jobs.md.",
    )


class OutcomeSerializer(Serializer):
    """The outcome of one planned action."""

    zone = serializers.CharField(help_text="Empty for the hub-wide stream.")
    stream = serializers.CharField()
    segment = serializers.CharField(help_text="The segment's UUID.")
    first = serializers.IntegerField(help_text="The segment's first sequence.")
    last = serializers.IntegerField(help_text="The segment's last sequence.")
    action = serializers.ChoiceField(choices=("drop", "archive", "compact"))
    bytes = serializers.IntegerField(help_text="Stored bytes of the segment.")
    outcome = serializers.ChoiceField(choices=get_args(Done))
    reason = serializers.CharField(
        help_text="Why the action was refused or not needed: `hold`, `needed`, `not_archived`,"
        " `open`, `no_archive`, `archive_damaged`, `archive_unavailable`, `archive_policy`, `gone`,"
        " `archived`; empty if it was done."
    )


class AppliedSerializer(Serializer):
    run = serializers.IntegerField()
    done = serializers.IntegerField()
    refused = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="Segments already in the planned state.")
    remaining = serializers.IntegerField(
        help_text="Actions not attempted yet: a request ends after"
        f" {limits.PLAN_APPLY_S_MAX:.0f} s, and the next one continues."
    )
    outcomes = OutcomeSerializer(
        many=True,
        help_text=f"At most {limits.PLAN_OUTCOMES_SHOWN_MAX} outcomes, refused ones first.",
    )
