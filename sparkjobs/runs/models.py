"""The table of runs of jobs. Django module."""

from django.contrib.postgres.functions import TransactionNow
from django.db import models
from django.db.models import (
    BigIntegerField,
    BooleanField,
    CheckConstraint,
    DateTimeField,
    Index,
    IntegerField,
    Q,
    TextField,
    UniqueConstraint,
    Value,
)

from eventhub.postgresql.tables import JsonTextField, TableStorage


class JobRun(models.Model):
    """A run of a job: asked for, under way, or over. It is its own lease: who may do the job is the
    one row that is `running`, and every write of a runner asks that its row still is.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"
        INTERRUPTED = "interrupted"

    id = models.BigAutoField(primary_key=True)
    job = TextField()
    state = TextField(choices=State, db_default=State.WAITING)
    requested_by = TextField(db_comment="timetable, command, or an operator's name")
    requested_at = DateTimeField(db_default=TransactionNow())
    attempt = IntegerField(
        db_default=1, db_comment="of the timetable: one that did not end well is repeated"
    )
    repeats = BigIntegerField(null=True, db_comment="the first of these; null: this is the first")
    not_before = DateTimeField(null=True, db_comment="when a repeat may begin; null: at once")
    params = JsonTextField(db_comment="as checked, with the ids of what they name")
    started_at = DateTimeField(null=True)
    lease_expires_at = DateTimeField(
        null=True, db_comment="of one that is running: when its runner counts as gone"
    )
    cancel_requested_at = DateTimeField(null=True)
    ended_at = DateTimeField(null=True)
    phase = TextField(db_default="", db_comment="what it is at, in words")
    rows_done = BigIntegerField(db_default=0, db_comment="of an export")
    stages_done = IntegerField(db_default=0, db_comment="of Spark")
    stages = IntegerField(db_default=0, db_comment="as far as it knows them by now")
    tasks_done = IntegerField(db_default=0)
    tasks = IntegerField(db_default=0)
    engine = TextField(db_default="", db_comment="what did it: spark local[2], local builder")
    verdict = TextField(db_default="", db_comment="of a job that judges: ok, problems")
    summary = TextField(db_default="", db_comment="what came of it, in a sentence")
    figures = JsonTextField(db_default=Value("{}", TextField()))
    reason = TextField(db_default="", db_comment="why it did not end well, an error's code")
    detail = TextField(db_default="", db_comment="and in words")
    publishing = BooleanField(
        db_default=False,
        db_comment="what it does from here on is not taken back, so nobody cancels it",
    )
    result_bytes = BigIntegerField(
        db_default=0, db_comment="of the files that it left, also when they are gone"
    )
    result_gone = BooleanField(db_default=False, db_comment="they had to make room for newer ones")

    storage = TableStorage(parameters={"fillfactor": 60})

    class Meta:
        db_table = "job_runs"
        db_table_comment = "runs of jobs"
        constraints = (
            CheckConstraint(
                condition=Q(
                    state__in=[
                        *("waiting", "running", "completed"),
                        *("failed", "cancelled", "interrupted"),
                    ]
                ),
                name="job_runs_state",
            ),
            UniqueConstraint(fields=["job"], condition=Q(state="running"), name="job_runs_running"),
        )
        indexes = (
            Index(fields=["id"], condition=Q(state="waiting"), name="job_runs_waiting"),
            Index(fields=["job", "id"], name="job_runs_history"),
        )

    def __str__(self) -> str:
        return f"{self.job} {self.pk}"
