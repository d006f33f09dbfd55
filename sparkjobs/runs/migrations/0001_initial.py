"""The table of runs of jobs."""

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
                    models.TextField(db_comment="timetable, command, or an operator's name"),
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
                        db_comment="of the timetable: one that did not end well is repeated",
                        db_default=1,
                    ),
                ),
                (
                    "repeats",
                    models.BigIntegerField(
                        db_comment="the first of these; null: this is the first", null=True
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        db_comment="when a repeat may begin; null: at once", null=True
                    ),
                ),
                (
                    "params",
                    eventhub.postgresql.tables.JsonTextField(
                        db_comment="as checked, with the ids of what they name"
                    ),
                ),
                ("started_at", models.DateTimeField(null=True)),
                (
                    "lease_expires_at",
                    models.DateTimeField(
                        db_comment="of one that is running: when its runner counts as gone",
                        null=True,
                    ),
                ),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("phase", models.TextField(db_comment="what it is at, in words", db_default="")),
                ("rows_done", models.BigIntegerField(db_comment="of an export", db_default=0)),
                ("stages_done", models.IntegerField(db_comment="of Spark", db_default=0)),
                (
                    "stages",
                    models.IntegerField(db_comment="as far as it knows them by now", db_default=0),
                ),
                ("tasks_done", models.IntegerField(db_default=0)),
                ("tasks", models.IntegerField(db_default=0)),
                (
                    "engine",
                    models.TextField(
                        db_comment="what did it: spark local[2], local builder", db_default=""
                    ),
                ),
                (
                    "verdict",
                    models.TextField(
                        db_comment="of a job that judges: ok, problems", db_default=""
                    ),
                ),
                (
                    "summary",
                    models.TextField(db_comment="what came of it, in a sentence", db_default=""),
                ),
                (
                    "figures",
                    eventhub.postgresql.tables.JsonTextField(
                        db_default=models.Value("{}", models.TextField())
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        db_comment="why it did not end well, an error's code", db_default=""
                    ),
                ),
                ("detail", models.TextField(db_comment="and in words", db_default="")),
                (
                    "publishing",
                    models.BooleanField(
                        db_comment="what it does from here on is not taken back, so nobody cancels it",
                        db_default=False,
                    ),
                ),
                (
                    "result_bytes",
                    models.BigIntegerField(
                        db_comment="of the files that it left, also when they are gone",
                        db_default=0,
                    ),
                ),
                (
                    "result_gone",
                    models.BooleanField(
                        db_comment="they had to make room for newer ones", db_default=False
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
