"""Acknowledgements over HTTP: their number, and the sequences that were requested again."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations
from django.db.models import BigIntegerField, Value


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("hub_sessions", "0001_initial")]

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
        migrations.AddField(
            model_name="sessioncursor",
            name="redeliver",
            field=ArrayField(
                base_field=BigIntegerField(),
                db_comment="sequences that the connection is requested to send again",
                db_default=Value([], ArrayField(BigIntegerField())),
                default=list,
            ),
        ),
    ]
