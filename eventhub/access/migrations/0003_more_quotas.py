"""Quotas of stored bytes, sockets and backlogs, and when a quota was reached."""

from django.db import migrations
from django.db.migrations import AddConstraint, AddField, AlterField, RemoveConstraint, RunSQL
from django.db.models import CheckConstraint, DateTimeField, Q, TextField


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("access", "0002_quotas")]

    operations = [
        AlterField(
            model_name="quota",
            name="kind",
            field=TextField(
                choices=[
                    ("events_per_s", "events_per_s"),
                    ("stored_bytes", "stored_bytes"),
                    ("sockets", "sockets"),
                    ("registrations", "registrations"),
                    ("endpoints", "endpoints"),
                    ("backlog_events", "backlog_events"),
                    ("backlog_bytes", "backlog_bytes"),
                ]
            ),
        ),
        AddField(
            model_name="quota",
            name="reached_at",
            field=DateTimeField(
                db_comment="since when it is used up; null: it is not, or nobody looks", null=True
            ),
        ),
        RemoveConstraint(model_name="quota", name="quotas_kind"),
        AddConstraint(
            model_name="quota",
            constraint=CheckConstraint(
                condition=Q(
                    (
                        "kind__in",
                        [
                            "events_per_s",
                            "stored_bytes",
                            "sockets",
                            "registrations",
                            "endpoints",
                            "backlog_events",
                            "backlog_bytes",
                        ],
                    )
                ),
                name="quotas_kind",
            ),
        ),
        RunSQL(
            RunSQL.noop,
            "DELETE FROM quotas"
            " WHERE kind IN ('stored_bytes', 'sockets', 'backlog_events', 'backlog_bytes')",
        ),
    ]
