"""The record of listens, from sql/listens_schema.sql."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent.parent / "sql"
_UNDO = "DROP TABLE listens; DROP SEQUENCE listen_ids"


class Migration(migrations.Migration):
    dependencies = (("delivery", "0001_delivery"),)
    operations = (migrations.RunSQL((SQL / "listens_schema.sql").read_text(), _UNDO),)
