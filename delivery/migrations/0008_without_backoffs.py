"""Drops what the circuit breakers and the schedule of retries replace. Processes from before them
write these columns, so this is the second half.
"""

from pathlib import Path

from django.db import migrations
from django.db.migrations import DeleteModel, RunSQL

FUNCTIONS = Path(__file__).parent.parent / "sql" / "functions"


class Migration(migrations.Migration):
    release = "0.1"
    half = "post"

    dependencies = [("delivery", "0007_retries")]

    operations = [
        DeleteModel(name="Backoff"),
        RunSQL(
            "DROP FUNCTION is_due"
            "(timestamptz, uuid, integer, integer, double precision, double precision)",
            (FUNCTIONS / "due.v1.sql").read_text(),
        ),
    ]
