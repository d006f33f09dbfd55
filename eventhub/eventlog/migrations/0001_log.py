"""The tables of the log, from sql/schema.sql."""

from pathlib import Path

from django.db import migrations

SCHEMA = Path(__file__).parent.parent / "sql" / "schema.sql"


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [migrations.RunSQL(SCHEMA.read_text(), migrations.RunSQL.noop)]
