"""One attempt for all deliveries that a request delivered together."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations
from django.db.models import BigIntegerField


class Migration(migrations.Migration):
    release = "0.1"

    dependencies = [("delivery", "0010_endpoint_statistics")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="sequences",
            field=ArrayField(
                base_field=BigIntegerField(),
                db_comment="of a batch: the sequences of the deliveries with this attempt,"
                " ascending, of which `sequence` is the first; null: one delivery",
                null=True,
            ),
        ),
    ]
