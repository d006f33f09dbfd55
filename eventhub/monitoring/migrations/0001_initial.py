"""Members of the hub, and connected clients as they were announced."""

from django.db import migrations, models

import eventhub.postgresql.tables


class Migration(migrations.Migration):
    release = "0.1.0"

    initial = True

    dependencies = []

    operations = [
        eventhub.postgresql.tables.CreateTable(
            name="Member",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        db_comment="a new one at each start of a process",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            ("web", "Web"),
                            ("forwarder", "Forwarder"),
                            ("worker", "Worker"),
                        ]
                    ),
                ),
                ("node", models.TextField(db_comment="the name of its host")),
                ("pid", models.IntegerField(db_comment="its process id on the host")),
                ("version", models.TextField(db_comment="its release")),
                ("started_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField(db_comment="its last heartbeat")),
                (
                    "joined_at",
                    models.DateTimeField(
                        db_comment="when its event was appended; null: not yet", null=True
                    ),
                ),
                (
                    "left_at",
                    models.DateTimeField(db_comment="when it ended by itself", null=True),
                ),
            ],
            options={
                "db_table": "members",
                "db_table_comment": "processes of the hub, with their heartbeats",
            },
            storage={"parameters": {"fillfactor": 50}},
        ),
        migrations.CreateModel(
            name="ClientPresence",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "zone_id",
                        "client_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("zone_id", models.BigIntegerField()),
                ("client_id", models.BigIntegerField()),
                ("client", models.TextField(db_comment="its name")),
                (
                    "since",
                    models.DateTimeField(db_comment="when its first socket was noticed"),
                ),
                (
                    "absent_since",
                    models.DateTimeField(
                        db_comment="since when it has no socket; null: it has one", null=True
                    ),
                ),
            ],
            options={
                "db_table": "client_presences",
                "db_table_comment": "connected clients of zones with presence, as they were"
                " announced",
            },
        ),
    ]
