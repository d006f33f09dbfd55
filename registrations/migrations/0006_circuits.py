"""The circuit breakers of endpoints, which replace the backoffs, and the schedule of retries."""

import datetime

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import TransactionNow
from django.db import migrations
from django.db.migrations import AddField, AlterField
from django.db.models import (
    DO_NOTHING,
    BigIntegerField,
    BooleanField,
    CheckConstraint,
    DateTimeField,
    FloatField,
    IntegerField,
    OneToOneField,
    Q,
    TextField,
)

from eventhub.postgresql.tables import CreateTable, Reference


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [
        ("eventlog", "0001_initial"),
        ("registrations", "0005_order_and_batches"),
    ]

    operations = [
        CreateTable(
            name="Circuit",
            fields=[
                (
                    "endpoint",
                    OneToOneField(
                        db_constraint=False,
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        related_name="circuit",
                        serialize=False,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "state",
                    TextField(
                        choices=[
                            ("closed", "Closed"),
                            ("open", "Open"),
                            ("half_open", "Half Open"),
                        ],
                        db_default="closed",
                    ),
                ),
                (
                    "failures",
                    IntegerField(db_comment="failed attempts in a row; 0: the last one succeeded"),
                ),
                (
                    "failing_since",
                    DateTimeField(db_comment="when the first of the last failures was written"),
                ),
                ("failed_at", DateTimeField(db_comment="when the last failure was written")),
                ("opened_at", DateTimeField(db_comment="when it opened last", null=True)),
                (
                    "openings",
                    IntegerField(db_comment="since the last announcement", db_default=0),
                ),
                ("pause_s", FloatField(db_comment="upper bound of the pause while it is open")),
                (
                    "retry_at",
                    DateTimeField(
                        db_comment="end of the pause; while half open, when the probe counts as lost"
                    ),
                ),
                (
                    "recorded_at",
                    DateTimeField(
                        db_comment="time of the last change; an endpoint changed later is called at once",
                        db_default=TransactionNow(),
                    ),
                ),
                (
                    "outcome",
                    TextField(db_comment="outcome of the last failure, as in attempts"),
                ),
                (
                    "status",
                    IntegerField(
                        db_comment="HTTP status of its answer, if there was one", null=True
                    ),
                ),
                (
                    "segment",
                    Reference(
                        db_comment="segment of the event of the last failure",
                        to="eventlog.segment",
                    ),
                ),
                ("sequence", BigIntegerField()),
                (
                    "announced_open",
                    BooleanField(db_comment="it was announced as open", db_default=False),
                ),
                (
                    "announced_at",
                    DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)
                    ),
                ),
                (
                    "warned_percent",
                    IntegerField(
                        db_comment="share of the time until it is disabled, as of the last announcement",
                        db_default=0,
                    ),
                ),
            ],
            options={
                "db_table": "circuits",
                "db_table_comment": "circuit breakers of endpoints that failed lately",
                "constraints": [
                    CheckConstraint(
                        condition=Q(("state__in", ["closed", "open", "half_open"])),
                        name="circuits_state",
                    )
                ],
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        AddField(
            model_name="endpoint",
            name="retry_schedule",
            field=ArrayField(
                base_field=IntegerField(),
                db_comment="pauses before the first retry, the second, ..., in seconds; null: the default",
                null=True,
            ),
        ),
        AddField(
            model_name="endpoint",
            name="rate_limit",
            field=FloatField(
                db_comment="requests per second at most, of all workers; null: unlimited", null=True
            ),
        ),
        AddField(
            model_name="endpoint",
            name="concurrency",
            field=IntegerField(
                db_comment="requests at a time at most, of all workers; null: unlimited", null=True
            ),
        ),
        AddField(
            model_name="endpoint",
            name="timeout_s",
            field=IntegerField(
                db_comment="seconds until an answer counts as missing; null: 12", null=True
            ),
        ),
        AddField(
            model_name="endpoint",
            name="disable_after_s",
            field=IntegerField(
                db_comment="seconds of failing without a success after which it is disabled; 0: never; null: the default",
                null=True,
            ),
        ),
        AlterField(
            model_name="endpoint",
            name="reason",
            field=TextField(
                db_comment="why it is disabled: request, gone, failing, unverified", null=True
            ),
        ),
    ]
