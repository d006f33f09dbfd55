"""Replay runs, and which of them wrote a delivery."""

import datetime

from django.contrib.postgres.functions import TransactionNow
from django.db import migrations
from django.db.migrations import AddField
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
)

from eventhub.postgresql.tables import CreateTable, JsonTextField, Reference


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [
        ("access", "0001_initial"),
        ("registrations", "0001_initial"),
        ("delivery", "0003_resend_valid"),
    ]

    operations = [
        AddField(
            "delivery",
            "replay_id",
            BigIntegerField(
                null=True, db_comment="the replay that wrote it; null: a forwarder did"
            ),
        ),
        CreateTable(
            name="ReplayRun",
            fields=[
                ("id", BigAutoField(primary_key=True, serialize=False)),
                ("zone", Reference(to="access.zone")),
                ("client", Reference(to="access.client", db_comment="the owner of the endpoint")),
                ("endpoint", Reference(to="registrations.endpoint")),
                (
                    "source",
                    TextField(choices=[("log", "Log"), ("deliveries", "Deliveries")]),
                ),
                (
                    "state",
                    TextField(
                        choices=[
                            ("running", "Running"),
                            ("paused", "Paused"),
                            ("completed", "Completed"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        db_default="running",
                    ),
                ),
                ("requested_by", TextField(db_comment="the client, or an operator's name")),
                (
                    "params",
                    JsonTextField(
                        db_comment="what is replayed: ranges and filter, or states and times"
                    ),
                ),
                (
                    "version_id",
                    BigIntegerField(
                        null=True,
                        db_comment="version of the registration whose filter and report count",
                    ),
                ),
                (
                    "position",
                    JsonTextField(db_comment="the last event or delivery that was examined"),
                ),
                ("steps", BigIntegerField(db_default=0, db_comment="increases with every step")),
                ("rate", IntegerField(db_comment="deliveries per second, at most")),
                (
                    "deliveries_max",
                    BigIntegerField(null=True, db_comment="it ends after so many; null: no bound"),
                ),
                ("force", BooleanField(db_default=False)),
                ("new_id", BooleanField(db_default=False)),
                (
                    "total",
                    BigIntegerField(
                        null=True, db_comment="events to examine, or deliveries, if known"
                    ),
                ),
                ("examined", BigIntegerField(db_default=0)),
                ("matched", BigIntegerField(db_default=0)),
                (
                    "written",
                    BigIntegerField(db_default=0, db_comment="deliveries written or made pending"),
                ),
                (
                    "skipped",
                    BigIntegerField(
                        db_default=0,
                        db_comment="delivered or discarded before, or pending already",
                    ),
                ),
                (
                    "missing",
                    BigIntegerField(db_default=0, db_comment="events that are no longer stored"),
                ),
                (
                    "paced_until",
                    DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                        db_comment="no step before: the rate allows none",
                    ),
                ),
                (
                    "waits_for",
                    TextField(
                        db_default="",
                        db_comment="why it makes no progress: endpoint, backlog, forwarder,"
                        " archive",
                    ),
                ),
                ("reason", TextField(db_default="", db_comment="the error code of a failure")),
                ("detail", TextField(db_default="", db_comment="the error message of a failure")),
                ("requested_at", DateTimeField(db_default=TransactionNow())),
                (
                    "updated_at",
                    DateTimeField(db_default=TransactionNow(), db_comment="time of the last step"),
                ),
                ("ended_at", DateTimeField(null=True)),
            ],
            options={
                "db_table": "replay_runs",
                "db_table_comment": "runs that send deliveries or events again",
                "indexes": [
                    Index(fields=["zone", "id"], name="replay_runs_by_zone"),
                    Index(condition=Q(state="running"), fields=["id"], name="replay_runs_running"),
                ],
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            state__in=["running", "paused", "completed", "cancelled", "failed"]
                        ),
                        name="replay_runs_state",
                    )
                ],
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
    ]
