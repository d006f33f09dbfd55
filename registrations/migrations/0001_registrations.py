"""The tables of sessions, endpoints and registrations, from sql/schema.sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True
    dependencies = (("access", "0001_access"), ("eventlog", "0001_log"))
    operations = (migrations.RunSQL((SQL / "schema.sql").read_text(), migrations.RunSQL.noop),)
