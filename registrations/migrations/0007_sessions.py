"""The sessions that registrations and their groups belong to."""

from django.db import migrations, models

import eventhub.postgresql.tables


class Migration(migrations.Migration):
    release = "0.1.0"

    dependencies = [
        ("access", "0003_more_quotas"),
        ("hub_sessions", "0001_initial"),
        ("registrations", "0006_circuits"),
    ]

    operations = [
        migrations.AddField(
            model_name="registration",
            name="session",
            field=eventhub.postgresql.tables.Reference(
                db_comment="the consumer session that it belongs to; immutable",
                null=True,
                to="hub_sessions.session",
            ),
        ),
        migrations.AddField(
            model_name="registration",
            name="session_group",
            field=eventhub.postgresql.tables.Reference(
                db_comment="or the session group",
                null=True,
                to="hub_sessions.sessiongroup",
            ),
        ),
        migrations.AddField(
            model_name="registrationgroup",
            name="parent",
            field=eventhub.postgresql.tables.Reference(
                db_comment="the root of its session; suspended with it, not by itself",
                null=True,
                to="registrations.registrationgroup",
            ),
        ),
        migrations.AddField(
            model_name="registrationgroup",
            name="root",
            field=models.BooleanField(
                db_comment="it holds all registrations of its session or session group",
                db_default=False,
            ),
        ),
        migrations.AddField(
            model_name="registrationgroup",
            name="session",
            field=eventhub.postgresql.tables.Reference(
                db_comment="the session that it belongs to",
                null=True,
                to="hub_sessions.session",
            ),
        ),
        migrations.AddField(
            model_name="registrationgroup",
            name="session_group",
            field=eventhub.postgresql.tables.Reference(
                db_comment="or the session group",
                null=True,
                to="hub_sessions.sessiongroup",
            ),
        ),
        migrations.AddIndex(
            model_name="registration",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True), ("session__isnull", False)),
                fields=["session", "id"],
                name="registrations_by_session",
            ),
        ),
        migrations.AddIndex(
            model_name="registration",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True), ("session_group__isnull", False)),
                fields=["session_group", "id"],
                name="registrations_by_session_group",
            ),
        ),
        migrations.AddIndex(
            model_name="registrationgroup",
            index=models.Index(
                condition=models.Q(("session__isnull", False)),
                fields=["session"],
                name="groups_by_session",
            ),
        ),
        migrations.AddIndex(
            model_name="registrationgroup",
            index=models.Index(
                condition=models.Q(("session_group__isnull", False)),
                fields=["session_group"],
                name="groups_by_session_group",
            ),
        ),
        migrations.AddIndex(
            model_name="registrationgroup",
            index=models.Index(
                condition=models.Q(("parent__isnull", False)),
                fields=["parent"],
                name="groups_by_parent",
            ),
        ),
    ]
