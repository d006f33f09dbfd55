"""The shapes of bodies and answers about jobs."""

from typing import Any, get_args

from rest_framework import serializers

from eventhub.access.fields import MomentField, ObjectField
from eventhub.access.shapes import Serializer
from eventhub.jobs.params import shown
from eventhub.jobs.rows import Run, State
from eventhub.jobs.selectors import Shown


class RunSerializer(Serializer):
    """A run of a job: asked for, under way, or over."""

    id = serializers.IntegerField()
    job = serializers.CharField()
    state = serializers.ChoiceField(
        choices=get_args(State),
        help_text="`waiting` for a worker; `interrupted`: its process has gone or was told to end.",
    )
    requested_by = serializers.CharField(
        help_text="`timetable`, `command`, or the name of an operator."
    )
    requested_at = MomentField(source="requested_at_us")
    attempt = serializers.IntegerField(
        help_text="1; more for a repeat of a run of the timetable that did not end well."
    )
    repeats = serializers.IntegerField(
        allow_null=True, help_text="The first run of these attempts; null: this is the first."
    )
    not_before = MomentField(
        source="not_before_us",
        allow_null=True,
        help_text="A repeat begins at this time or later; null: at once.",
    )
    started_at = MomentField(source="started_at_us", allow_null=True)
    ended_at = MomentField(source="ended_at_us", allow_null=True)
    phase = serializers.CharField(help_text="What it is at; empty if it is not under way.")
    rows_done = serializers.IntegerField(help_text="While inputs are written: of this table.")
    stages_done = serializers.IntegerField(help_text="Of Spark, as far as it knows them by now.")
    stages = serializers.IntegerField()
    tasks_done = serializers.IntegerField()
    tasks = serializers.IntegerField()
    params = serializers.SerializerMethodField(help_text="As they were asked for.")
    engine = serializers.CharField(help_text="What did it: `spark local[2]`, `local builder`.")
    verdict = serializers.ChoiceField(
        choices=["", "ok", "problems"], help_text="Of a job that judges, once it has completed."
    )
    summary = serializers.CharField(help_text="What came of it, in a sentence.")
    figures = ObjectField(help_text="Numbers and texts by name.")
    reason = serializers.CharField(help_text="Why it did not end well: an error's code.")
    detail = serializers.CharField(help_text="The same in words.")
    result_bytes = serializers.IntegerField(
        help_text="Of the files that it left, also when they are gone."
    )
    result_gone = serializers.BooleanField(
        help_text="Its files and details had to make room for newer ones; its figures are kept."
    )

    def get_params(self, run: Run) -> dict[str, Any]:
        return shown(run.params)


class FileSerializer(Serializer):
    name = serializers.CharField(help_text="Its path below `files/`.")
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    about = serializers.CharField(help_text="What is in it.")


class RunShownSerializer(RunSerializer):
    """With what it left, if it has completed."""

    details = ObjectField(help_text="What the job found, for screens; see docs/jobs.md.")
    files = FileSerializer(many=True)

    @classmethod
    def represent(cls, item: Shown) -> dict[str, Any]:
        files = [*map(FileSerializer.represent, item.files)]
        return {**RunSerializer.represent(item.run), "details": item.details, "files": files}


class JobSerializer(Serializer):
    name = serializers.CharField(source="kind.name")
    about = serializers.CharField(source="kind.about", help_text="What it is for.")
    timetable = serializers.CharField(
        allow_null=True, help_text="When it is asked for by itself; null: never."
    )
    next_at = MomentField(source="next_us", allow_null=True)
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
