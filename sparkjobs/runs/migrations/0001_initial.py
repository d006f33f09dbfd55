"""The table of job runs."""

from django.contrib.postgres.functions import TransactionNow
from django.db import migrations
from django.db.models import (
    BigAutoField,
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

from eventhub.postgresql.tables import CreateTable, JsonTextField


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = []

    operations = [
        CreateTable(
            name="JobRun",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                ("job", TextField()),
                (
                    "state",
                    TextField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("interrupted", "Interrupted"),
                        ],
                        db_default="waiting",
                    ),
                ),
                ("requested_by", TextField(db_comment="schedule, command, or an operator's name")),
                ("requested_at", DateTimeField(db_default=TransactionNow())),
                (
                    "attempt",
                    IntegerField(
                        db_comment="1, or more for a retry of a failed scheduled run", db_default=1
                    ),
                ),
                (
                    "retry_of",
                    BigIntegerField(
                        db_comment="the first attempt; null: this is the first", null=True
                    ),
                ),
                (
                    "not_before",
                    DateTimeField(db_comment="when a retry may start; null: at once", null=True),
                ),
                ("params", JsonTextField(db_comment="validated, with the ids of named objects")),
                ("started_at", DateTimeField(null=True)),
                (
                    "lease_expires_at",
                    DateTimeField(
                        db_comment="while running: when its runner counts as dead", null=True
                    ),
                ),
                ("cancel_requested_at", DateTimeField(null=True)),
                ("ended_at", DateTimeField(null=True)),
                ("phase", TextField(db_comment="the current phase, while running", db_default="")),
                (
                    "rows_done",
                    BigIntegerField(db_comment="exported rows of the current table", db_default=0),
                ),
                ("stages_done", IntegerField(db_comment="of Spark", db_default=0)),
                ("stages", IntegerField(db_comment="known so far", db_default=0)),
                ("tasks_done", IntegerField(db_default=0)),
                ("tasks", IntegerField(db_default=0)),
                ("engine", TextField(db_comment="spark local[2], local builder", db_default="")),
                ("verdict", TextField(db_comment="of an audit: ok, problems", db_default="")),
                ("summary", TextField(db_comment="the result in one line", db_default="")),
                ("figures", JsonTextField(db_default=Value("{}", TextField()))),
                ("reason", TextField(db_comment="the error code of a failure", db_default="")),
                ("detail", TextField(db_comment="the error message of a failure", db_default="")),
                (
                    "publishing",
                    BooleanField(
                        db_comment="it can no longer be undone or cancelled", db_default=False
                    ),
                ),
                (
                    "result_bytes",
                    BigIntegerField(
                        db_comment="size of the result's files, also of deleted ones", db_default=0
                    ),
                ),
                (
                    "result_deleted",
                    BooleanField(
                        db_comment="the files were deleted to make space for newer ones",
                        db_default=False,
                    ),
                ),
            ],
            options={
                "db_table": "job_runs",
                "db_table_comment": "runs of jobs",
                "indexes": [
                    Index(
                        condition=Q(("state", "waiting")), fields=["id"], name="job_runs_waiting"
                    ),
                    Index(fields=["job", "id"], name="job_runs_history"),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            (
                                "state__in",
                                [
                                    "waiting",
                                    "running",
                                    "completed",
                                    "failed",
                                    "cancelled",
                                    "interrupted",
                                ],
                            )
                        ),
                        name="job_runs_state",
                    ),
                    UniqueConstraint(
                        condition=Q(("state", "running")), fields=("job",), name="job_runs_running"
                    ),
                ],
            },
            storage={"parameters": {"fillfactor": 60}},
        )
    ]
