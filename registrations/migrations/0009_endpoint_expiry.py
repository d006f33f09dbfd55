"""Endpoints of subscriptions of MCP: their expiry, format and handshake."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

# The release before knows no subscriptions: it gets them disabled.
_BACK = """
UPDATE endpoints SET handshake = 'none', format = 'native', enabled = false, reason = 'request'
 WHERE handshake = 'mcp' OR format = 'mcp'
"""


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [
        ("registrations", "0008_endpoint_kinds"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="endpoint",
            name="endpoints_format",
        ),
        migrations.RemoveConstraint(
            model_name="endpoint",
            name="endpoints_handshake",
        ),
        migrations.AddField(
            model_name="endpoint",
            name="expires_at",
            field=models.DateTimeField(
                db_comment="when the hub deletes it, with its registrations; null: never", null=True
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="format",
            field=models.TextField(
                choices=[
                    ("native", "Native"),
                    ("cloudevents_structured", "Cloudevents Structured"),
                    ("cloudevents_binary", "Cloudevents Binary"),
                    ("mcp", "Mcp"),
                ],
                db_comment="format of the callbacks' bodies",
                db_default="native",
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="handshake",
            field=models.TextField(
                choices=[
                    ("none", "None"),
                    ("cloudevents", "Cloudevents"),
                    ("challenge", "Challenge"),
                    ("check", "Check"),
                    ("mcp", "Mcp"),
                ],
                db_comment="how the receiver must agree to callbacks before the first one",
                db_default="none",
            ),
        ),
        migrations.AddIndex(
            model_name="endpoint",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True), ("expires_at__isnull", False)),
                fields=["expires_at"],
                name="endpoints_by_expiry",
            ),
        ),
        AddConstraintNotValid(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "format__in",
                        ["native", "cloudevents_structured", "cloudevents_binary", "mcp"],
                    )
                ),
                name="endpoints_format",
            ),
        ),
        AddConstraintNotValid(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("handshake__in", ["none", "cloudevents", "challenge", "check", "mcp"])
                ),
                name="endpoints_handshake",
            ),
        ),
        migrations.RunSQL("", _BACK),
    ]
