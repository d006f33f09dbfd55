"""The pause before the next attempt of a delivery, and whether it is over."""

import datetime
from pathlib import Path

from django.db import migrations
from django.db.migrations import AddField, AlterField, RunSQL
from django.db.models import (
    DO_NOTHING,
    DateTimeField,
    FloatField,
    IntegerField,
    OneToOneField,
    TextField,
)

from eventhub.postgresql.tables import CreateTable

FUNCTIONS = Path(__file__).parent.parent / "sql" / "functions"


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [
        ("delivery", "0006_index_by_stream"),
        ("registrations", "0006_circuits"),
    ]

    operations = [
        AddField(
            model_name="delivery",
            name="pause_s",
            field=FloatField(db_comment="pause before the next attempt; null: none", null=True),
        ),
        AlterField(
            model_name="delivery",
            name="uncounted_attempts",
            field=IntegerField(
                db_comment="attempts before the delivery was requested again, which do not count",
                db_default=0,
            ),
        ),
        AlterField(
            model_name="endpointloss",
            name="reason",
            field=TextField(
                db_comment="bound that was exceeded last, if dropped, else outcome of the last attempt",
                db_default="",
            ),
        ),
        CreateTable(
            name="EndpointThrottle",
            fields=[
                (
                    "endpoint",
                    OneToOneField(
                        db_constraint=False,
                        on_delete=DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="registrations.endpoint",
                    ),
                ),
                (
                    "full_at",
                    DateTimeField(
                        db_comment="when the bucket will be full again",
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                    ),
                ),
            ],
            options={
                "db_table": "endpoint_throttles",
                "db_table_comment": "token buckets of endpoints with a rate limit",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
        RunSQL(
            (FUNCTIONS / "due.v2.sql").read_text(),
            "DROP FUNCTION is_due(timestamptz, uuid, double precision)",
        ),
    ]
