"""Quotas of patterns."""

from django.db import migrations
from django.db.migrations import AddConstraint, AlterField, RemoveConstraint, RunSQL
from django.db.models import CheckConstraint, Q, TextField

KINDS = [
    "events_per_s",
    "stored_bytes",
    "sockets",
    "registrations",
    "endpoints",
    "timers",
    "patterns",
    "backlog_events",
    "backlog_bytes",
]


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("access", "0006_timer_quotas")]

    operations = [
        AlterField(
            model_name="quota",
            name="kind",
            field=TextField(choices=[(kind, kind) for kind in KINDS]),
        ),
        RemoveConstraint(model_name="quota", name="quotas_kind"),
        AddConstraint(
            model_name="quota",
            constraint=CheckConstraint(condition=Q(("kind__in", KINDS)), name="quotas_kind"),
        ),
        RunSQL(RunSQL.noop, "DELETE FROM quotas WHERE kind = 'patterns'"),
    ]
