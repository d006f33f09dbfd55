"""The table of job runs. Django module."""

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
    """A run of a job: waiting, running or ended. It is its own lease: at most one row of a job is
    `running`, and every write of its runner requires that it still is.
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
    requested_by = TextField(db_comment="schedule, command, or an operator's name")
    requested_at = DateTimeField(db_default=TransactionNow())
    attempt = IntegerField(
        db_default=1, db_comment="1, or more for a retry of a failed scheduled run"
    )
    retry_of = BigIntegerField(null=True, db_comment="the first attempt; null: this is the first")
    not_before = DateTimeField(null=True, db_comment="when a retry may start; null: at once")
    params = JsonTextField(db_comment="validated, with the ids of named objects")
    started_at = DateTimeField(null=True)
    lease_expires_at = DateTimeField(
        null=True, db_comment="while running: when its runner counts as dead"
    )
    cancel_requested_at = DateTimeField(null=True)
    ended_at = DateTimeField(null=True)
    phase = TextField(db_default="", db_comment="the current phase, while running")
    rows_done = BigIntegerField(db_default=0, db_comment="exported rows of the current table")
    stages_done = IntegerField(db_default=0, db_comment="of Spark")
    stages = IntegerField(db_default=0, db_comment="known so far")
    tasks_done = IntegerField(db_default=0)
    tasks = IntegerField(db_default=0)
    engine = TextField(db_default="", db_comment="spark local[2], local builder")
    verdict = TextField(db_default="", db_comment="of an audit: ok, problems")
    summary = TextField(db_default="", db_comment="the result in one line")
    figures = JsonTextField(db_default=Value("{}", TextField()))
    reason = TextField(db_default="", db_comment="the error code of a failure")
    detail = TextField(db_default="", db_comment="the error message of a failure")
    publishing = BooleanField(
        db_default=False, db_comment="it can no longer be undone or cancelled"
    )
    result_bytes = BigIntegerField(
        db_default=0, db_comment="size of the result's files, also of deleted ones"
    )
    result_deleted = BooleanField(
        db_default=False, db_comment="the files were deleted to make space for newer ones"
    )

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
