"""An index by which an operator's connection token finds the login it stands for."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("access", "0001_access"), ("sessions", "0001_initial")]
    operations = [
        migrations.RunSQL(
            "CREATE INDEX operator_sessions ON django_session (sha256(session_key::bytea))",
            "DROP INDEX operator_sessions",
        )
    ]
