"""The tables of the log, from sql/schema.sql, and the append, from sql/append_function.sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [
        migrations.RunSQL((SQL / file).read_text(), migrations.RunSQL.noop)
        for file in ("schema.sql", "append_function.sql")
    ]
