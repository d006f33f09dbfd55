"""Endpoints whose events are stored in a sink instead of posted."""

from django.db import migrations, models

# The release before knows no sinks: it gets them disabled.
_BACK = """
UPDATE endpoints SET handshake = 'none', enabled = false, reason = 'request' WHERE kind <> 'https'
"""


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [
        ("access", "0007_pattern_quotas"),
        ("registrations", "0007_sessions"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="endpoint",
            name="endpoints_handshake",
        ),
        migrations.AddField(
            model_name="endpoint",
            name="kind",
            field=models.TextField(
                db_comment="https: events are posted; else the kind of sink they go to",
                db_default="https",
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="settings",
            field=models.JSONField(db_comment="settings of the kind of sink", db_default={}),
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
                ],
                db_comment="how the receiver must agree to callbacks before the first one",
                db_default="none",
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("handshake__in", ["none", "cloudevents", "challenge", "check"])
                ),
                name="endpoints_handshake",
            ),
        ),
        migrations.RunSQL("", _BACK),
    ]
