"""How often a session is handed out an event, and the events that were skipped after that."""

import datetime

import django.db.models.deletion
from django.db import migrations, models

import eventhub.postgresql.tables

ATTEMPTS_MAX = "how often an event is handed out before it is skipped; null: without end"


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("hub_sessions", "0005_redelivery")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="attempts_max",
            field=models.IntegerField(db_comment=ATTEMPTS_MAX, null=True),
        ),
        migrations.AddField(
            model_name="sessiongroup",
            name="attempts_max",
            field=models.IntegerField(db_comment=ATTEMPTS_MAX, null=True),
        ),
        eventhub.postgresql.tables.CreateTable(
            name="SessionSkip",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="hub_sessions.session",
                    ),
                ),
                (
                    "events",
                    models.BigIntegerField(db_comment="events since the last announcement"),
                ),
                (
                    "skipped",
                    models.JSONField(
                        db_comment="the first of them: stream, segment, sequence, attempts",
                        db_default=models.Value([], models.JSONField()),
                        default=list,
                    ),
                ),
                ("since", models.DateTimeField(null=True)),
                (
                    "announced_at",
                    models.DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)
                    ),
                ),
            ],
            options={
                "db_table": "session_skips",
                "db_table_comment": "events that sessions did not process, until they are announced",
            },
            storage={"parameters": {"fillfactor": 60}},
        ),
    ]
