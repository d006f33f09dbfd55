"""The attempts at endpoints by minute and by hour."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations
from django.db.migrations import AlterField
from django.db.models import (
    BigIntegerField,
    CompositePrimaryKey,
    DateTimeField,
    IntegerField,
    TextField,
)

from eventhub.postgresql.tables import CreateTable, Reference


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [
        ("delivery", "0009_counts_of_tenants"),
        ("registrations", "0006_circuits"),
    ]

    operations = [
        CreateTable(
            name="EndpointStatistics",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "step_s",
                        "starts_at",
                        "endpoint_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("step_s", IntegerField(db_comment="60 or 3600")),
                ("starts_at", DateTimeField(db_comment="the start of the minute or hour")),
                ("endpoint", Reference(to="registrations.endpoint")),
                ("delivered", BigIntegerField(db_default=0)),
                (
                    "client_errors",
                    BigIntegerField(db_comment="attempts answered with 4xx", db_default=0),
                ),
                (
                    "server_errors",
                    BigIntegerField(db_comment="attempts answered with 5xx", db_default=0),
                ),
                ("timeouts", BigIntegerField(db_default=0)),
                ("connection_errors", BigIntegerField(db_default=0)),
                ("other_failures", BigIntegerField(db_default=0)),
                (
                    "durations",
                    ArrayField(
                        base_field=IntegerField(),
                        db_comment="attempts by their duration: a histogram of"
                        " delivery/statistics/histogram.py",
                        db_default=[],
                        size=None,
                    ),
                ),
                (
                    "latencies",
                    ArrayField(
                        base_field=IntegerField(),
                        db_comment="delivered events by the time from their append: the same",
                        db_default=[],
                        size=None,
                    ),
                ),
                (
                    "pending",
                    BigIntegerField(
                        db_comment="the largest backlog that was counted", db_default=0
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "endpoint statistics",
                "db_table": "endpoint_statistics",
                "db_table_comment": "attempts at endpoints by minute and by hour",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        AlterField(
            model_name="delivery",
            name="last_outcome",
            field=TextField(
                db_comment="outcome of the last attempt if it failed, as in attempts; withheld: a"
                " dead letter that was never attempted",
                null=True,
            ),
        ),
    ]
