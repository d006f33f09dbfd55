"""The pause before the next attempt of a delivery, and whether it is over."""

from pathlib import Path

from django.db import migrations
from django.db.migrations import AddField, RunSQL
from django.db.models import FloatField

FUNCTIONS = Path(__file__).parent.parent / "sql" / "functions"


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [
        ("delivery", "0001_initial"),
        ("registrations", "0002_circuits"),
    ]

    operations = [
        AddField(
            model_name="delivery",
            name="pause_s",
            field=FloatField(db_comment="pause before the next attempt; null: none", null=True),
        ),
        RunSQL(
            (FUNCTIONS / "due.v2.sql").read_text(),
            "DROP FUNCTION is_due(timestamptz, uuid, double precision)",
        ),
    ]
