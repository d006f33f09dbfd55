"""Lanes by key, and when each lane is due."""

import django.contrib.postgres.fields
import django.db.models.functions.comparison
from django.db import migrations, models

import eventhub.postgresql.tables


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [
        ("access", "0001_initial"),
        ("delivery", "0004_replay_runs"),
        ("eventlog", "0001_initial"),
        ("registrations", "0001_initial"),
    ]

    operations = [
        migrations.AlterModelTableComment(
            name="lane",
            table_comment="ordered lanes with pending deliveries, and the workers that hold them",
        ),
        migrations.AddField(
            model_name="delivery",
            name="lane",
            field=models.BigIntegerField(
                db_comment="if ordered by key: its number, negative; null: the lane is the whole stream",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="fanout",
            name="lanes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(null=True),
                db_comment="lane of each endpoint that is ordered by key; may be shorter",
                db_default=[],
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="lane",
            name="due_at",
            field=models.DateTimeField(
                db_comment="when it can be taken; null: known to release 0.1 alone", null=True
            ),
        ),
        migrations.AddField(
            model_name="lane",
            name="touched",
            field=models.BooleanField(
                db_comment="deliveries were written since it was taken", db_default=True
            ),
        ),
        migrations.AlterField(
            model_name="lane",
            name="expires_at",
            field=models.DateTimeField(db_comment="when its hold expires"),
        ),
        migrations.AlterField(
            model_name="lane",
            name="stream",
            field=eventhub.postgresql.tables.Reference(
                db_comment="the stream, or the number of the lane, which is negative",
                to="eventlog.stream",
            ),
        ),
        migrations.AlterField(
            model_name="lane",
            name="token",
            field=models.UUIDField(
                db_comment="of the claim of the worker that took it last", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                models.F("endpoint"),
                django.db.models.functions.comparison.Coalesce("lane", "stream"),
                models.F("sequence"),
                condition=models.Q(("state", "pending"), ("ordered", True)),
                name="deliveries_lanes",
            ),
        ),
        migrations.AddIndex(
            model_name="lane",
            index=models.Index(fields=["endpoint", "due_at"], name="lanes_due"),
        ),
    ]
