"""Whether clients that connect, and API calls, of a zone are events."""

from django.db import migrations, models


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("access", "0004_allowed_addresses")]

    operations = [
        migrations.AddField(
            model_name="zone",
            name="presence",
            field=models.BooleanField(
                db_comment="whether its clients that connect and disconnect are events",
                db_default=False,
            ),
        ),
        migrations.AddField(
            model_name="zone",
            name="traces",
            field=models.BooleanField(
                db_comment="whether its API calls are events", db_default=False
            ),
        ),
    ]
