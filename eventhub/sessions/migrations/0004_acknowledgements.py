"""The number of acknowledgements over HTTP, which a connection has to know."""

from django.db import migrations
from django.db.models import BigIntegerField


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("hub_sessions", "0003_sharing")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="acknowledgements",
            field=BigIntegerField(
                db_comment="acknowledgements over HTTP so far; a connection that does not know all"
                " of them saves no positions",
                db_default=0,
            ),
        ),
    ]
