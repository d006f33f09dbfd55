"""The table of runs of jobs, from sql/schema.sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = (migrations.RunSQL((SQL / "schema.sql").read_text(), migrations.RunSQL.noop),)
