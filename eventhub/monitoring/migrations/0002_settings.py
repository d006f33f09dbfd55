"""Members store digests of the settings that all machines must share."""

from django.db import migrations, models


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("monitoring", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="member",
            name="settings",
            field=models.JSONField(
                db_comment="digests of the settings that all machines share; null: of an earlier"
                " release",
                null=True,
            ),
        ),
    ]
