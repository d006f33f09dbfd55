"""The addresses that a key may be used from."""

from django.db import migrations, models


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("access", "0003_more_quotas")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="allowed_addresses",
            field=models.JSONField(
                db_comment="addresses and networks that it may be used from; null: every one",
                null=True,
            ),
        ),
    ]
