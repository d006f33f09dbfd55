"""The table of job runs."""

import django.contrib.postgres.functions
from django.db import migrations, models

import eventhub.postgresql.tables


class Migration(migrations.Migration):
    initial = True
    release = "0.1"

    dependencies = []

    operations = [
        eventhub.postgresql.tables.CreateTable(
            name="JobRun",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("job", models.TextField()),
                (
                    "state",
                    models.TextField(
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
                (
                    "requested_by",
                    models.TextField(db_comment="schedule, command, or an operator's name"),
                ),
                (
                    "requested_at",
                    models.DateTimeField(
                        db_default=django.contrib.postgres.functions.TransactionNow()
                    ),
                ),
                (
                    "attempt",
                    models.IntegerField(
                        db_comment="1, or more for a retry of a failed scheduled run",
                        db_default=1,
                    ),
                ),
                (
                    "retry_of",
                    models.BigIntegerField(
                        db_comment="the first attempt; null: this is the first", null=True
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        db_comment="when a retry may start; null: at once", null=True
                    ),
                ),
                (
                    "params",
                    eventhub.postgresql.tables.JsonTextField(
                        db_comment="validated, with the ids of named objects"
                    ),
                ),
                ("started_at", models.DateTimeField(null=True)),
                (
                    "lease_expires_at",
                    models.DateTimeField(
                        db_comment="while running: when its runner counts as dead",
                        null=True,
                    ),
                ),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "phase",
                    models.TextField(db_comment="the current phase, while running", db_default=""),
                ),
                (
                    "rows_done",
                    models.BigIntegerField(
                        db_comment="exported rows of the current table", db_default=0
                    ),
                ),
                ("stages_done", models.IntegerField(db_comment="of Spark", db_default=0)),
                ("stages", models.IntegerField(db_comment="known so far", db_default=0)),
                ("tasks_done", models.IntegerField(db_default=0)),
                ("tasks", models.IntegerField(db_default=0)),
                (
                    "engine",
                    models.TextField(db_comment="spark local[2], local builder", db_default=""),
                ),
                (
                    "verdict",
                    models.TextField(db_comment="of an audit: ok, problems", db_default=""),
                ),
                (
                    "summary",
                    models.TextField(db_comment="the result in one line", db_default=""),
                ),
                (
                    "figures",
                    eventhub.postgresql.tables.JsonTextField(
                        db_default=models.Value("{}", models.TextField())
                    ),
                ),
                (
                    "reason",
                    models.TextField(db_comment="the error code of a failure", db_default=""),
                ),
                (
                    "detail",
                    models.TextField(db_comment="the error message of a failure", db_default=""),
                ),
                (
                    "publishing",
                    models.BooleanField(
                        db_comment="it can no longer be undone or cancelled", db_default=False
                    ),
                ),
                (
                    "result_bytes",
                    models.BigIntegerField(
                        db_comment="size of the result's files, also of deleted ones", db_default=0
                    ),
                ),
                (
                    "result_deleted",
                    models.BooleanField(
                        db_comment="the files were deleted to make space for newer ones",
                        db_default=False,
                    ),
                ),
            ],
            options={
                "db_table": "job_runs",
                "db_table_comment": "runs of jobs",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["id"],
                        name="job_runs_waiting",
                    ),
                    models.Index(fields=["job", "id"], name="job_runs_history"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
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
                    models.UniqueConstraint(
                        condition=models.Q(("state", "running")),
                        fields=("job",),
                        name="job_runs_running",
                    ),
                ],
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
    ]
