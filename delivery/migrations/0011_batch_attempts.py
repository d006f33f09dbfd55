"""One attempt for all deliveries that a request delivered together; probes that do not count."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations
from django.db.models import BigIntegerField, IntegerField


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
        migrations.AlterField(
            model_name="delivery",
            name="uncounted_attempts",
            field=IntegerField(
                db_comment="attempts that do not count: those before the delivery was requested"
                " again, and early probes",
                db_default=0,
            ),
        ),
    ]
