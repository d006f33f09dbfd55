"""The table of partitions that left the database, from sql/retired_schema.sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = (("delivery", "0002_listens"),)
    operations = (
        migrations.RunSQL(
            (SQL / "retired_schema.sql").read_text(), "DROP TABLE retired_partitions"
        ),
    )
