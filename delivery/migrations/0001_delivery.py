"""The tables of forwarding, deliveries and attempts, from sql/schema.sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True
    dependencies = (("registrations", "0001_registrations"),)
    operations = (migrations.RunSQL((SQL / "schema.sql").read_text(), migrations.RunSQL.noop),)
