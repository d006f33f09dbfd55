"""Receivers are notified that their subscriptions of MCP have ended."""

from django.db import migrations, models


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [("registrations", "0010_endpoint_expiry_valid")]

    operations = [
        migrations.AddField(
            model_name="endpointverification",
            name="farewell",
            field=models.TextField(
                db_comment="the message to a receiver whose subscription of MCP has ended; null: a"
                " challenge",
                null=True,
            ),
        ),
    ]
