"""The table of what is tried for every event, from sql/dear_filters.sql. Registrations of before
count from their next change on.
"""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = (("registrations", "0001_registrations"),)
    operations = (
        migrations.RunSQL((SQL / "dear_filters.sql").read_text(), "DROP TABLE dear_filters"),
    )
