"""The events that the connection of a session has to deliver again."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations
from django.db.models import BigIntegerField, Value


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("hub_sessions", "0004_acknowledgements")]

    operations = [
        migrations.AddField(
            model_name="sessioncursor",
            name="redeliver",
            field=ArrayField(
                base_field=BigIntegerField(),
                db_comment="events that the connection has to deliver again at once",
                db_default=Value([], ArrayField(BigIntegerField())),
                default=list,
                size=None,
            ),
        ),
    ]
